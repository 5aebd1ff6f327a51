// Mutants of offloading: of what the store keeps between OFFLOAD and RELOAD, and of the order of these actions.
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <map>
#include <optional>

#include "conformance/mutants/mutants.h"
#include "conformance/mutants/same_bytes.h"
#include "runtime/schedule/schedule.h"

namespace plumbline::conformance {
namespace {

using engine::StoredBlock;

/// What a store has kept so far.
struct Kept {
  std::map<StoredBlock, at::Tensor> now;     ///< written and not dropped
  std::map<StoredBlock, at::Tensor> before;  ///< of the step before, or dropped in this one
};

/// Returns what a store gives back for a block, in place of `right`.
using Read = std::function<at::Tensor(const FaultSite& site, const Kept& kept, const StoredBlock& block,
                                      const at::Tensor& right)>;

/// Keeps everything in memory, and returns what `read` says.
class WrongStore : public engine::ActivationStore {
 public:
  WrongStore(const FaultSite& site, Read read) : site_(site), read_(std::move(read)) {}

  void write(const StoredBlock& block, const at::Tensor& bytes) override { kept_.now[block] = bytes.clone(); }
  at::Tensor read(const StoredBlock& block) override {
    const at::Tensor right = kept_.now.at(block).clone();
    const at::Tensor wrong = read_(site_, kept_, block, right);
    if (same_bytes(right, wrong)) return right;
    site_.happens();
    return wrong.clone();
  }
  void drop(const StoredBlock& block) override {
    kept_.before[block] = kept_.now.at(block);
    kept_.now.erase(block);
  }

 private:
  const FaultSite site_;
  const Read read_;
  Kept kept_;
};

Mutant in_the_store(std::string name, std::string what, Read read, std::vector<Need> more = {}) {
  Mutant mutant{std::move(name), std::move(what), [read = std::move(read)](const FaultSite& site) {
                  Fault fault;
                  fault.options = [site, read](engine::EngineOptions& options) {
                    options.store = [site, read] { return std::make_unique<WrongStore>(site, read); };
                  };
                  return fault;
                }};
  mutant.needs = {need::offloads};
  mutant.needs.insert(mutant.needs.end(), more.begin(), more.end());
  return mutant;
}

/// The first block of `of` that has the size of `right` and a key other than `block`, as `alike` says; else `right`.
template <class Alike>
at::Tensor other_block(const std::map<StoredBlock, at::Tensor>& of, const StoredBlock& block, const at::Tensor& right,
                       Alike alike) {
  for (const auto& [other, bytes] : of)
    if (other != block && bytes.numel() == right.numel() && alike(other)) return bytes;
  return right;
}

at::Tensor with_zeros_from(const at::Tensor& right, int64_t begin) {
  at::Tensor wrong = right.clone();
  if (begin < right.numel()) wrong.narrow(0, begin, right.numel() - begin).zero_();
  return wrong;
}

/// Changes the list of actions of each rank.
Mutant order(std::string name, std::string what, bool (*change)(std::vector<schedule::Action>& actions)) {
  return {std::move(name),
          std::move(what),
          [change](const FaultSite& site) {
            Fault fault;
            fault.schedule = [site, change](schedule::Schedule& schedule) {
              for (std::vector<schedule::Action>& actions : schedule.ranks)
                if (change(actions)) return site.happens();
            };
            return fault;
          },
          {need::offloads}};
}

}  // namespace

std::vector<Mutant> mutants_in_the_store() {
  using schedule::ActionType;
  return {
      in_the_store("reload-of-another-microbatch",
                   "A reload brings back the activations of another micro-batch of its stage that are away.",
                   [](const FaultSite&, const Kept& kept, const StoredBlock& block, const at::Tensor& right) {
                     return other_block(kept.now, block, right, [&](const StoredBlock& other) {
                       return other.stage == block.stage && other.number == block.number;
                     });
                   }),
      in_the_store("reload-of-another-stage",
                   "Blocks are kept by micro-batch alone: a reload brings back those of another stage of the rank.",
                   [](const FaultSite&, const Kept& kept, const StoredBlock& block, const at::Tensor& right) {
                     return other_block(kept.now, block, right, [&](const StoredBlock& other) {
                       return other.microbatch == block.microbatch && other.number == block.number;
                     });
                   }),
      in_the_store("reload-of-an-earlier-offload",
                   "A reload finds what the room in the store had before: an offload that has ended already.",
                   [](const FaultSite&, const Kept& kept, const StoredBlock& block, const at::Tensor& right) {
                     return other_block(kept.before, block, right, [](const StoredBlock&) { return true; });
                   }),
      in_the_store("reload-of-the-step-before", "A reload brings back the activations of the step before.",
                   [](const FaultSite&, const Kept& kept, const StoredBlock& block, const at::Tensor& right) {
                     const auto found = kept.before.find(block);
                     return found != kept.before.end() && found->second.numel() == right.numel() ? found->second
                                                                                                 : right;
                   },
                   {need::several_trainings}),
      in_the_store("reload-before-the-write-ended",
                   "A reload begins before its offload's write has ended: the second half of each block is not there.",
                   [](const FaultSite&, const Kept&, const StoredBlock&, const at::Tensor& right) {
                     return with_zeros_from(right, right.numel() / 2);
                   }),
      in_the_store("offload-drops-a-tensor",
                   "The first tensor of each offload is not written, and comes back as zeros.",
                   [](const FaultSite&, const Kept&, const StoredBlock& block, const at::Tensor& right) {
                     return block.number == 0 ? at::zeros_like(right) : right;
                   }),
      in_the_store("offloaded-memory-used-again",
                   "The memory is used again before it was written: the store has the next block of the same size.",
                   [](const FaultSite&, const Kept& kept, const StoredBlock& block, const at::Tensor& right) {
                     return other_block(kept.now, block, right, [&](const StoredBlock& other) {
                       return other.stage == block.stage && other.microbatch == block.microbatch &&
                              other.number == block.number + 1;
                     });
                   }),
      in_the_store("offload-in-whole-sectors", "A block is written in whole sectors of 64 bytes; the rest is lost.",
                   [](const FaultSite&, const Kept&, const StoredBlock&, const at::Tensor& right) {
                     return with_zeros_from(right, right.numel() / 64 * 64);
                   }),
      in_the_store("offload-in-bf16", "Activations in float32 are stored as bf16.",
                   [](const FaultSite&, const Kept&, const StoredBlock&, const at::Tensor& right) {
                     if (right.numel() % 4 != 0) return right;
                     return right.clone().view(at::kFloat).to(at::kBFloat16).to(at::kFloat).view(at::kByte);
                   },
                   {need::float32}),
      order("reload-left-out", "A rank leaves out its first RELOAD.",
            [](std::vector<schedule::Action>& actions) {
              const auto found = std::ranges::find(actions, ActionType::RELOAD, &schedule::Action::type);
              if (found == actions.end()) return false;
              actions.erase(found);
              return true;
            }),
      order("reload-after-the-backward", "A rank's first RELOAD stands after the backward that needs it.",
            [](std::vector<schedule::Action>& actions) {
              const auto found = std::ranges::find(actions, ActionType::RELOAD, &schedule::Action::type);
              if (found == actions.end()) return false;
              const schedule::Action reload = *found;
              actions.erase(found);
              actions.push_back(reload);
              return true;
            }),
  };
}

}  // namespace plumbline::conformance
