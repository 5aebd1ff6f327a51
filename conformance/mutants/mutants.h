// Mutants: named faults, injected into runs to show that the corpus catches them. Each file in faults/ contains the
// mutants of one part of the runtime (on_the_wire.cc, in_the_forward.cc, ...).
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "conformance/backend/fault.h"
#include "conformance/judge/expectation.h"

namespace plumbline::conformance {

/// A run into which a mutant may be injected. Case and schedule must outlive this struct.
struct MutantRun {
  const reference::Case& of;
  const schedule::Schedule& schedule;
  CaseTraits traits;

  bool has(reference::StepKind kind) const;   ///< whether the case has a step of this kind
  int count(reference::StepKind kind) const;  ///< number of steps of this kind
};

/// A requirement of a mutant on its run.
struct Need {
  const char* what;  ///< the required property, a noun phrase: "a training step"
  bool (*met)(const MutantRun& run);
};

struct Mutant {
  std::string name;
  std::string what;                                  ///< one sentence
  std::function<Fault(const FaultSite& site)> make;  ///< called for each rank, concurrently
  std::vector<Need> needs = {};                      ///< the run must meet all of them
  int least_ranks = 1;
  /// A rank may wait for a message that never comes, so that the run gets a short time-out.
  bool hangs = false;
};

/// All mutants, grouped by part of the runtime; names are unique.
const std::vector<Mutant>& mutants();

/// Returns the mutant with this name. Throws InputError, which lists all names, if there is none.
const Mutant& find_mutant(const std::string& name);

/// Whether backwards are in halves: whether there is a W.
bool has_halves(const schedule::Schedule& schedule);

/// Returns the first requirement that the run does not meet ("2 ranks or more"); empty if the mutant can be injected.
std::string why_not(const Mutant& mutant, const MutantRun& run);

namespace need {
extern const Need training, halves, several_microbatches, buffers, random_layers, shared_parameters, uneven_rows,
    mean_loss, sum_loss, optimizer, evaluation, evaluation_after_training, several_evaluations, several_trainings,
    zero_grad_between, float32, bf16, division, no_division, three_ranks, divisor, class_weights, ignored_targets,
    several_targets, local_losses, added_losses, clipping, loss_scale, skipped_steps, resumed, saved, replicas, sharded,
    offloads, groups, plain_accumulation, accumulation_hooks, value_hooks, weight_closures, divided, whole_gradients,
    input_gradients, some_gradients, early_exits, complex_numbers, conjugated_numbers, loss_parameters;
}  // namespace need

std::vector<Mutant> mutants_on_the_wire();
std::vector<Mutant> mutants_on_streams();
std::vector<Mutant> mutants_in_shared_sums();
std::vector<Mutant> mutants_between_replicas();
std::vector<Mutant> mutants_in_the_forward();
std::vector<Mutant> mutants_in_the_backward();
std::vector<Mutant> mutants_in_the_accumulator();
std::vector<Mutant> mutants_in_the_hooks();
std::vector<Mutant> mutants_in_recomputation();
std::vector<Mutant> mutants_in_the_loss();
std::vector<Mutant> mutants_in_the_batch();
std::vector<Mutant> mutants_in_the_pipe();
std::vector<Mutant> mutants_in_the_steps();
std::vector<Mutant> mutants_in_the_optimizer();
std::vector<Mutant> mutants_in_the_norm();
std::vector<Mutant> mutants_in_the_saved_state();
std::vector<Mutant> mutants_in_the_schedule();
std::vector<Mutant> mutants_in_the_store();
std::vector<Mutant> mutants_in_groups();
std::vector<Mutant> mutants_in_the_results();
std::vector<Mutant> mutants_in_what_is_given();

}  // namespace plumbline::conformance
