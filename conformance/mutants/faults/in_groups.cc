// Mutants of groups: a forward and a backward that run together, and take each other's or an earlier one's values.
#include <map>
#include <memory>

#include "conformance/mutants/stage_mutant.h"

namespace plumbline::conformance {
namespace {

/// Whether the action of this kind (a backward: any but F), stage and micro-batch is a member of a group.
bool is_in_group(const schedule::Schedule& schedule, int stage, int microbatch, bool forward) {
  for (const std::vector<schedule::Action>& actions : schedule.ranks)
    for (size_t i = 0; i < actions.size(); ++i) {
      const schedule::Action& action = actions[i];
      if (action.stage != stage || action.microbatch != microbatch ||
          (action.type == schedule::ActionType::F) != forward || !schedule::is_compute(action.type))
        continue;
      if (action.overlaps_next || (i > 0 && actions[i - 1].overlaps_next)) return true;
    }
  return false;
}

/// `list` holds the values of the micro-batch before, per stage; those of members of groups are replaced by them.
std::function<void(int, Tensors&)> those_before(const FaultSite& site, int stage, bool forward) {
  auto last = std::make_shared<Tensors>();
  return [site, stage, forward, last](int microbatch, Tensors& values) {
    const Tensors mine = values;
    if (is_in_group(site.schedule, stage, microbatch, forward) && last->size() == mine.size())
      for (size_t i = 0; i < mine.size(); ++i) {
        const at::Tensor& before = (*last)[i];
        if (mine[i].defined() && before.defined() && before.sizes() == mine[i].sizes() &&
            before.scalar_type() == mine[i].scalar_type())
          values[i] = before;
      }
    last->clear();
    for (const at::Tensor& value : mine) last->push_back(value.defined() ? value.detach().clone() : value);
  };
}

}  // namespace

std::vector<Mutant> mutants_in_groups() {
  const std::vector<Need> needs = {need::groups, need::several_microbatches};
  return {
      stage_mutant(
          "group-backward-of-another-microbatch",
          "The backward of a group begins with the gradients of the stage's backward before.",
          [](const FaultSite& site, int stage) { return StageHooks{.root_grads = those_before(site, stage, false)}; },
          needs),
      stage_mutant(
          "group-forward-of-another-microbatch",
          "The forward of a group gets the inputs of the stage's forward before.",
          [](const FaultSite& site, int stage) { return StageHooks{.inputs = those_before(site, stage, true)}; },
          needs),
      stage_mutant(
          "group-returns-another-gradient",
          "The backward of a group sends the gradient of the stage's backward before.",
          [](const FaultSite& site, int stage) { return StageHooks{.input_grads = those_before(site, stage, false)}; },
          needs),
  };
}

}  // namespace plumbline::conformance
