#include "conformance/mutants/mutants.h"

#include <algorithm>
#include <ranges>

#include "conformance/corpus/features.h"
#include "runtime/error.h"
#include "runtime/text/join.h"

namespace plumbline::conformance {
namespace {

bool trains(const MutantRun& run) { return run.has(reference::StepKind::Train); }

/// Whether a step of kind `second` follows one of kind `first` and, if `and_again`, is followed by another `first`.
bool in_turn(const MutantRun& run, reference::StepKind first, reference::StepKind second, bool and_again) {
  const auto& steps = run.of.steps;
  const auto a = std::find(steps.begin(), steps.end(), first);
  const auto b = std::find(a, steps.end(), second);
  return b != steps.end() && (!and_again || std::find(b, steps.end(), first) != steps.end());
}

bool any_action(const MutantRun& run, bool (*is)(const schedule::Action&)) {
  return std::ranges::any_of(run.schedule.ranks, [&](const auto& actions) { return std::ranges::any_of(actions, is); });
}

}  // namespace

bool MutantRun::has(reference::StepKind kind) const { return count(kind) > 0; }
int MutantRun::count(reference::StepKind kind) const {
  return static_cast<int>(std::count(of.steps.begin(), of.steps.end(), kind));
}

bool has_halves(const schedule::Schedule& schedule) {
  return std::ranges::any_of(schedule.ranks, [](const auto& actions) {
    return std::ranges::find(actions, schedule::ActionType::W, &schedule::Action::type) != actions.end();
  });
}

namespace need {
const Need training{"a training step", &trains};
const Need halves{"a schedule with backwards in halves",
                  [](const MutantRun& run) { return trains(run) && has_halves(run.schedule); }};
const Need several_microbatches{"2 micro-batches or more",
                                [](const MutantRun& run) { return run.schedule.microbatches > 1; }};
const Need buffers{"buffers", [](const MutantRun& run) { return run.traits.has_buffers; }};
const Need random_layers{"layers that draw random numbers",
                         [](const MutantRun& run) { return run.traits.draws_random_numbers; }};
const Need shared_parameters{"a parameter that several stages share",
                             [](const MutantRun& run) { return run.traits.shares_parameters && trains(run); }};
const Need uneven_rows{"rows that do not divide evenly",
                       [](const MutantRun& run) { return run.of.rows % run.schedule.microbatches != 0; }};
const Need mean_loss{"a mean loss", [](const MutantRun& run) {
                       return run.of.loss.reduction == reference::Reduction::Mean && !run.of.loss.equal_weights;
                     }};
const Need sum_loss{"a sum loss",
                    [](const MutantRun& run) { return run.of.loss.reduction == reference::Reduction::Sum; }};
const Need optimizer{"an optimizer", [](const MutantRun& run) { return run.has(reference::StepKind::Optimizer); }};
const Need evaluation{"an evaluation", [](const MutantRun& run) { return run.has(reference::StepKind::Eval); }};
const Need evaluation_after_training{
    "an evaluation after a training step",
    [](const MutantRun& run) { return in_turn(run, reference::StepKind::Train, reference::StepKind::Eval, false); }};
const Need several_evaluations{"2 evaluations or more",
                               [](const MutantRun& run) { return run.count(reference::StepKind::Eval) > 1; }};
const Need several_trainings{"2 training steps or more",
                             [](const MutantRun& run) { return run.count(reference::StepKind::Train) > 1; }};
const Need zero_grad_between{"a zero_grad between training steps", [](const MutantRun& run) {
                               return in_turn(run, reference::StepKind::Train, reference::StepKind::ZeroGrad, true);
                             }};
const Need float32{"float32", [](const MutantRun& run) { return run.of.dtype == reference::Dtype::F32; }};
const Need bf16{"bf16", [](const MutantRun& run) { return run.of.dtype == reference::Dtype::BF16; }};
const Need division{"gradients divided by the number of micro-batches",
                    [](const MutantRun& run) { return trains(run) && run.of.division == reference::Division::Engine; }};
const Need no_division{"gradients that are not divided", [](const MutantRun& run) {
                         return trains(run) && run.of.division != reference::Division::Engine;
                       }};
const Need three_ranks{"3 ranks or more", [](const MutantRun& run) { return run.schedule.ranks.size() > 2; }};
const Need divisor{"a loss that the user divides", [](const MutantRun& run) {
                     return trains(run) && (run.of.division == reference::Division::User ||
                                            run.of.loss.reduction == reference::Reduction::BatchMean);
                   }};
const Need class_weights{"class weights", [](const MutantRun& run) { return run.of.loss.class_weights; }};
const Need loss_parameters{"parameters of the loss", [](const MutantRun& run) { return run.of.loss.parameters; }};
const Need ignored_targets{"ignored targets", [](const MutantRun& run) { return run.of.loss.ignores_targets; }};
const Need several_targets{"several targets",
                           [](const MutantRun& run) { return has_feature(run.of, "several-targets"); }};
const Need local_losses{"losses that stay in early stages", [](const MutantRun& run) {
                          return run.of.loss.auxiliary == reference::AuxiliaryLosses::InPlace;
                        }};
const Need added_losses{"losses of early stages that are added", [](const MutantRun& run) {
                          return run.of.loss.auxiliary == reference::AuxiliaryLosses::Added;
                        }};
const Need clipping{"gradients that are clipped", [](const MutantRun& run) { return run.of.optimizer.clip_norm != 0; }};
const Need loss_scale{"losses that are scaled", [](const MutantRun& run) { return run.of.optimizer.loss_scale != 1; }};
const Need skipped_steps{"steps that are skipped when a gradient is not finite",
                         [](const MutantRun& run) { return run.of.optimizer.skip_nonfinite; }};
const Need resumed{"a resumed run", [](const MutantRun& run) { return !run.of.steps_before.empty(); }};
const Need saved{"a saved state of the optimizer", [](const MutantRun& run) { return run.of.saves_optimizer; }};
const Need replicas{"data-parallel replicas", [](const MutantRun& run) { return run.of.replicas > 1; }};
const Need offloads{"activations that are offloaded",
                    [](const MutantRun& run) { return trains(run) && schedule::has_offload(run.schedule); }};
const Need groups{"groups of a forward and a backward", [](const MutantRun& run) {
                    return trains(run) && any_action(run, [](const schedule::Action& a) { return a.overlaps_next; });
                  }};
const Need divided{"a batch that the user divides", [](const MutantRun& run) { return run.of.divided; }};
const Need input_gradients{"gradients of inputs", [](const MutantRun& run) { return run.of.input_gradients; }};
const Need whole_gradients{"gradients of whole inputs", [](const MutantRun& run) { return run.of.whole_gradients; }};
const Need some_gradients{"inputs that require gradients in some micro-batches",
                          [](const MutantRun& run) { return !run.of.gradient_microbatches.empty(); }};
const Need complex_numbers{"complex numbers between stages",
                           [](const MutantRun& run) { return has_feature(run.of, "complex"); }};
const Need conjugated_numbers{"conjugated numbers between stages",
                              [](const MutantRun& run) { return run.of.model.ends_with("conjugated"); }};
const Need early_exits{"an evaluation in which micro-batches may leave early", [](const MutantRun& run) {
                         return run.has(reference::StepKind::Eval) && run.of.model.ends_with("early-exit");
                       }};
const Need sharded{"parameters divided among replicas", [](const MutantRun& run) { return run.of.shards_parameters; }};
const Need accumulation_hooks{"hooks after accumulations",
                              [](const MutantRun& run) { return run.of.accumulation_hooks; }};
const Need plain_accumulation{
    "no hooks after accumulations, no weight gradients apart from autograd",
    [](const MutantRun& run) { return !run.of.accumulation_hooks && !run.of.weight_closures; }};
const Need value_hooks{"hooks on values", [](const MutantRun& run) { return run.of.model.ends_with("hooked"); }};
const Need weight_closures{"weight gradients apart from autograd",
                           [](const MutantRun& run) { return run.of.weight_closures; }};
}  // namespace need

const std::vector<Mutant>& mutants() {
  static const std::vector<Mutant> all = [] {
    std::vector<Mutant> joined;
    for (auto list : {&mutants_on_the_wire,        &mutants_on_streams,       &mutants_in_shared_sums,
                      &mutants_between_replicas,   &mutants_in_the_forward,   &mutants_in_the_backward,
                      &mutants_in_the_accumulator, &mutants_in_the_hooks,     &mutants_in_recomputation,
                      &mutants_in_the_loss,        &mutants_in_the_batch,     &mutants_in_the_pipe,
                      &mutants_in_the_steps,       &mutants_in_the_optimizer, &mutants_in_the_norm,
                      &mutants_in_the_saved_state, &mutants_in_the_schedule,  &mutants_in_the_store,
                      &mutants_in_groups,          &mutants_in_the_results,   &mutants_in_what_is_given})
      for (Mutant& mutant : list()) joined.push_back(std::move(mutant));
    return joined;
  }();
  return all;
}

const Mutant& find_mutant(const std::string& name) {
  for (const Mutant& mutant : mutants())
    if (mutant.name == name) return mutant;
  throw InputError("no mutant '" + name +
                   "'; expected one of: " + join(mutants() | std::views::transform(&Mutant::name)));
}

std::string why_not(const Mutant& mutant, const MutantRun& run) {
  if (static_cast<int>(run.schedule.ranks.size()) < mutant.least_ranks)
    return std::to_string(mutant.least_ranks) + " ranks or more";
  for (const Need& need : mutant.needs)
    if (!need.met(run)) return need.what;
  return {};
}

}  // namespace plumbline::conformance
