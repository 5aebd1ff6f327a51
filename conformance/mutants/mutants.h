// Mutants: named faults, injected into a run to show that the corpus catches them. Each file in faults/ lists the
// mutants of one place (on_the_wire.cc, in_the_forward.cc, ...).
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "conformance/backend/fault.h"
#include "conformance/judge/expectation.h"

namespace plumbline::conformance {

/// A run into which a mutant may be injected.
struct MutantRun {
  const reference::Case& of;
  const schedule::Schedule& schedule;
  CaseTraits traits;

  bool has(reference::StepKind kind) const;
  int count(reference::StepKind kind) const;
};

/// A requirement of a mutant on its run.
struct Need {
  const char* what;
  bool (*met)(const MutantRun& run);
};

struct Mutant {
  std::string name;
  std::string what;  ///< one sentence
  std::function<Fault(const FaultSite& site)> make;
  std::vector<Need> needs = {};
  int least_ranks = 1;
  /// A rank may wait for a message that never comes: run it with a short time-out.
  bool hangs = false;
};

/// Grouped by where the fault sits; names are unique.
const std::vector<Mutant>& mutants();

/// Throws InputError listing all mutants.
const Mutant& find_mutant(const std::string& name);

/// The first requirement that the run does not meet ("2 ranks or more"); empty if the mutant can be injected.
std::string why_not(const Mutant& mutant, const MutantRun& run);

namespace need {
extern const Need training, halves, several_microbatches, buffers, random_layers, shared_parameters, uneven_rows,
    mean_loss, sum_loss, optimizer, evaluation, evaluation_after_training, several_trainings, zero_grad_between,
    float32, bf16, division, no_division, three_ranks;
}  // namespace need

std::vector<Mutant> mutants_on_the_wire();
std::vector<Mutant> mutants_in_shared_sums();
std::vector<Mutant> mutants_in_the_forward();
std::vector<Mutant> mutants_in_the_backward();
std::vector<Mutant> mutants_in_the_accumulator();
std::vector<Mutant> mutants_in_recomputation();
std::vector<Mutant> mutants_in_the_loss();
std::vector<Mutant> mutants_in_the_batch();
std::vector<Mutant> mutants_in_the_pipe();
std::vector<Mutant> mutants_in_the_steps();
std::vector<Mutant> mutants_in_the_optimizer();
std::vector<Mutant> mutants_in_the_schedule();
std::vector<Mutant> mutants_in_the_results();

}  // namespace plumbline::conformance
