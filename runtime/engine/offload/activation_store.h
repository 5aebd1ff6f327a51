// ActivationStore: where offloaded activations stay, outside the memory in which the rank computes.
//
// The store here is a temporary file. On a GPU the store would be pinned memory of the host; the engine only needs this
// interface.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>

namespace plumbline::engine {

/// One block of memory: number `number` of those that a stage's activations of a micro-batch occupy, from 0.
struct StoredBlock {
  int stage = 0;
  int microbatch = 0;
  int number = 0;
  auto operator<=>(const StoredBlock&) const = default;
};

/// A rank calls its store from one thread at a time: the thread that transfers, beside the one that computes.
class ActivationStore {
 public:
  virtual ~ActivationStore() = default;

  /// Copies a block into the store, which must not hold it. `bytes` is a contiguous tensor of bytes; it may be freed
  /// when this function returns. Throws Error if there is no room.
  virtual void write(const StoredBlock& block, const at::Tensor& bytes) = 0;

  /// Returns a copy of the block in new memory of the device from which it came. The block must be in the store.
  virtual at::Tensor read(const StoredBlock& block) = 0;

  /// Frees the block's room; the block must be in the store.
  virtual void drop(const StoredBlock& block) = 0;
};

/// Makes the store of one rank.
using MakeStore = std::function<std::unique_ptr<ActivationStore>()>;

/// A store in a file in the system's temporary folder ($TMPDIR, else /tmp), for tensors on the CPU. The file has no
/// name: it is gone when the process is, however that ends. It is read and written by calls and not mapped, so a full
/// disk is an error, not a signal. Room is used again for blocks of at most its size. Throws Error if the file cannot
/// be made.
std::unique_ptr<ActivationStore> file_store();

}  // namespace plumbline::engine
