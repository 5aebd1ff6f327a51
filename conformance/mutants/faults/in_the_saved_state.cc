// Mutants between two runs: the state that one saves, and from which another, with other stages, resumes.
#include <ATen/ops/equal.h>
#include <ATen/ops/full_like.h>

#include <algorithm>

#include "conformance/mutants/mutants.h"

namespace plumbline::conformance {
namespace {

using reference::SavedState;

Mutant resuming(std::string name, std::string what, std::function<void(const FaultSite&, SavedState&)> change,
                std::vector<Need> needs = {}, int least_ranks = 1) {
  needs.insert(needs.begin(), need::resumed);
  return {std::move(name), std::move(what),
          [change = std::move(change)](const FaultSite& site) {
            Fault fault;
            fault.resumes = [site, change](SavedState& state) { change(site, state); };
            return fault;
          },
          std::move(needs), least_ranks};
}

/// Changes what the state becomes under every name that ends in `entry`; `changed` returns the new tensor.
void change_entries(const FaultSite& site, SavedState& state, std::string_view entry,
                    const std::function<at::Tensor(const at::Tensor&)>& changed) {
  for (auto& [name, tensor] : state.optimizer) {
    if (!name.ends_with(entry)) continue;
    const at::Tensor value = changed(tensor);
    if (at::equal(value, tensor)) continue;
    tensor = value;
    site.happens();
  }
}

void drop_optimizer(const FaultSite& site, SavedState& state) {
  if (!state.optimizer.empty()) site.happens();
  state.optimizer.clear();
}

/// Each tensor of the optimizer's state becomes that of the next parameter with the same shape.
void shift_entries(const FaultSite& site, SavedState& state) {
  const reference::OptimizerState right = state.optimizer;
  for (auto it = right.begin(); it != right.end(); ++it) {
    const std::string entry = it->first.substr(it->first.rfind('/'));
    const auto next = std::find_if(std::next(it), right.end(), [&](const auto& other) {
      return other.first.ends_with(entry) && other.second.sizes() == it->second.sizes();
    });
    if (next == right.end() || at::equal(next->second, it->second)) continue;
    state.optimizer[it->first] = next->second;
    site.happens();
  }
}

Mutant saving(std::string name, std::string what,
              std::function<void(const FaultSite&, const reference::ResultKey&, reference::Results&)> change,
              int least_ranks = 1) {
  return {std::move(name),
          std::move(what),
          [change = std::move(change)](const FaultSite& site) {
            Fault fault;
            fault.results = [site, change](reference::Results& results) {
              const reference::Results right = results;
              for (const auto& [text, tensor] : right)
                if (const auto key = reference::parse_result_key(text);
                    key.kind == reference::ResultKind::OptimizerState)
                  change(site, key, results);
            };
            return fault;
          },
          {need::saved},
          least_ranks};
}

}  // namespace

std::vector<Mutant> mutants_in_the_saved_state() {
  return {
      resuming("resumed-without-optimizer", "The optimizer begins without state.", &drop_optimizer),
      resuming(
          "optimizer-resumed-on-first-rank", "Ranks after the first begin without the optimizer's state.",
          [](const FaultSite& site, SavedState& state) {
            if (site.rank > 0) drop_optimizer(site, state);
          },
          {}, 2),
      resuming("initial-parameters", "The parameters are initialized anew.",
               [](const FaultSite& site, SavedState& state) {
                 state.parameters.clear();
                 site.happens();
               }),
      resuming("initial-buffers", "The buffers are initialized anew.",
               [](const FaultSite& site, SavedState& state) {
                 state.buffers.clear();
                 site.happens();
               },
               {need::buffers}),
      resuming("updates-counted-anew", "The updates are counted from the resumed run's first one.",
               [](const FaultSite& site, SavedState& state) {
                 change_entries(site, state, "/step", [](const at::Tensor& step) { return at::full_like(step, 0); });
               }),
      resuming("one-count-of-updates", "Every parameter counts as many updates as that with the most.",
               [](const FaultSite& site, SavedState& state) {
                 int64_t most = 0;
                 for (const auto& [name, tensor] : state.optimizer)
                   if (name.ends_with("/step")) most = std::max(most, tensor.item<int64_t>());
                 change_entries(site, state, "/step",
                                [&](const at::Tensor& step) { return at::full_like(step, most); });
               }),
      resuming("state-of-next-parameter", "Parameters of the same shape get each other's optimizer state.",
               &shift_entries),
      resuming("state-rounded-to-bf16", "The optimizer's state is saved in bf16.",
               [](const FaultSite& site, SavedState& state) {
                 for (const char* entry : {"/momentum_buffer", "/exp_avg", "/exp_avg_sq"})
                   change_entries(site, state, entry, [](const at::Tensor& tensor) {
                     return tensor.to(at::kBFloat16).to(tensor.scalar_type());
                   });
               }),
      saving(
          "state-of-first-rank-only", "Ranks after the first do not save the optimizer's state.",
          [](const FaultSite& site, const reference::ResultKey& key, reference::Results& results) {
            if (site.rank == 0) return;
            results.erase(to_string(key));
            site.happens();
          },
          2),
      saving("state-under-names-of-the-rank", "The optimizer's state is saved under names that begin with the rank.",
             [](const FaultSite& site, const reference::ResultKey& key, reference::Results& results) {
               auto item = results.extract(to_string(key));
               reference::ResultKey named = key;
               named.name = "rank" + std::to_string(site.rank) + "." + key.name;
               item.key() = to_string(named);
               results.insert(std::move(item));
               site.happens();
             }),
      saving("state-saved-as-zeros", "The optimizer's state is saved before its first update.",
             [](const FaultSite& site, const reference::ResultKey& key, reference::Results& results) {
               at::Tensor& tensor = results.at(to_string(key));
               const at::Tensor zeros = at::full_like(tensor, 0);
               if (at::equal(zeros, tensor)) return;
               tensor = zeros;
               site.happens();
             }),
  };
}

}  // namespace plumbline::conformance
