#include "runtime/engine/offload/host_transfers.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>

#include <unordered_map>
#include <unordered_set>

#include "runtime/engine/context.h"
#include "runtime/engine/step/stopwatch.h"
#include "runtime/error.h"

namespace plumbline::engine {
namespace {

at::Tensor bytes_of(const c10::Storage& memory) {
  at::Tensor bytes = at::empty({0}, at::TensorOptions(at::kByte).device(memory.device()));
  bytes.unsafeGetTensorImpl()->set_storage_keep_dtype(memory);
  bytes.unsafeGetTensorImpl()->set_sizes_contiguous({static_cast<int64_t>(memory.nbytes())});
  return bytes;
}

std::unordered_set<const c10::StorageImpl*> memory_of(std::span<const at::Tensor> tensors) {
  std::unordered_set<const c10::StorageImpl*> memory;
  for (const at::Tensor& tensor : tensors)
    if (tensor.defined() && tensor.has_storage()) memory.insert(tensor.storage().unsafeGetStorageImpl());
  return memory;
}

}  // namespace

void HostTransfers::offload(int stage, int microbatch, SavedValues& saved, std::span<const at::Tensor> inputs,
                            std::span<const at::Tensor> kept, StoredActivations& stored) {
  const c10::NoGradGuard no_grad;
  const std::unordered_set<const c10::StorageImpl*> stays = memory_of(kept);
  std::unordered_map<const c10::StorageImpl*, int> numbers;
  std::vector<c10::Storage> blocks;
  const auto take = [&](std::shared_ptr<SavedValue> value, std::vector<std::shared_ptr<SavedValue>>& taken) {
    const c10::StorageImpl* const memory = value->memory();
    if (memory == nullptr || memory->nbytes() == 0 || stays.contains(memory)) return;
    const auto [known, is_new] = numbers.try_emplace(memory, static_cast<int>(blocks.size()));
    if (is_new) blocks.push_back(value->storage());
    value->take_away(known->second);
    taken.push_back(std::move(value));
  };
  for (std::shared_ptr<SavedValue>& value : saved.alive()) take(std::move(value), stored.values);
  for (const at::Tensor& input : inputs)
    if (input.defined())
      take(std::make_shared<SavedValue>(input, input.unsafeGetTensorImpl()->version_counter()), stored.inputs);
  stored.blocks = std::make_shared<std::vector<at::Tensor>>(blocks.size());
  lane_.begin([store = store_, stage, microbatch, blocks = std::move(blocks)]() mutable {
    for (size_t i = 0; i < blocks.size(); ++i) {
      store->write({stage, microbatch, static_cast<int>(i)}, bytes_of(blocks[i]));
      blocks[i] = c10::Storage();
    }
  });
}

void HostTransfers::reload(int stage, int microbatch, StoredActivations& stored) {
  std::vector<char> needed(stored.blocks ? stored.blocks->size() : 0);
  // A value whose only owner is this list was freed by its node while it was away.
  std::erase_if(stored.values, [](const std::shared_ptr<SavedValue>& value) { return value.use_count() == 1; });
  for (const auto* list : {&stored.values, &stored.inputs})
    for (const std::shared_ptr<SavedValue>& value : *list) needed[value->block()] = true;
  stored.reload = lane_.begin([store = store_, stage, microbatch, needed = std::move(needed), blocks = stored.blocks] {
    for (size_t i = 0; i < needed.size(); ++i) {
      const StoredBlock block{stage, microbatch, static_cast<int>(i)};
      if (needed[i]) (*blocks)[i] = store->read(block);
      store->drop(block);
    }
  });
}

void HostTransfers::await_reload(int stage, int microbatch, StoredActivations& stored,
                                 const transport::Deadline& deadline, double& waiting) {
  if (!stored.blocks) return;
  if (stored.reload == 0) throw Error(place(stage, microbatch) + ": its activations were offloaded and not reloaded");
  {
    const Stopwatch stopwatch(waiting);
    lane_.wait(stored.reload, deadline, [&] { return place(stage, microbatch) + ": its activations"; });
  }
  for (const auto* list : {&stored.values, &stored.inputs})
    for (const std::shared_ptr<SavedValue>& value : *list) value->give_back((*stored.blocks)[value->block()].storage());
  stored = StoredActivations();
}

}  // namespace plumbline::engine
