// HostTransfers: executes a rank's OFFLOAD and RELOAD.
//
// An OFFLOAD takes the memory of all that autograd still keeps for the backward of a stage and micro-batch, and of the
// stage's inputs from other stages. It leaves out the memory of parameters, buffers and the batch, which others own. A
// memory that several tensors share is moved once; so is memory in which other tensors of the step lie, which stays
// with them as well. The transfers run on a thread beside the computations, in the order of the actions; the thread
// frees each block as soon as the store has it, and allocates it when it reads it.
#pragma once

#include <memory>
#include <span>

#include "runtime/engine/offload/activation_store.h"
#include "runtime/engine/offload/saved_values.h"
#include "runtime/engine/offload/transfer_lane.h"

namespace plumbline::engine {

/// What a micro-batch has in the store, from its OFFLOAD until it is back.
struct StoredActivations {
  std::vector<std::shared_ptr<SavedValue>> values;  ///< of autograd's nodes
  std::vector<std::shared_ptr<SavedValue>> inputs;
  std::shared_ptr<std::vector<at::Tensor>> blocks;  ///< by number; written by the transfers of a RELOAD
  uint64_t reload = 0;                              ///< the number of the transfer; 0: no RELOAD yet
};

class HostTransfers {
 public:
  explicit HostTransfers(std::unique_ptr<ActivationStore> store) : store_(std::move(store)) {}

  /// Begins to move the values that are alive and whose memory is not in `kept`, and those of `inputs`. Does not block.
  void offload(int stage, int microbatch, SavedValues& saved, std::span<const at::Tensor> inputs,
               std::span<const at::Tensor> kept, StoredActivations& stored);

  /// Begins to bring back those that are still needed. Does not block.
  void reload(int stage, int microbatch, StoredActivations& stored);

  /// Before a computation of the stage and micro-batch: waits for the end of its reload, if there is one, and gives the
  /// memory back. Adds the seconds of the wait to `waiting`. Throws Error without a RELOAD after an OFFLOAD,
  /// TimeoutError, and the store's errors.
  void require(int stage, int microbatch, StoredActivations& stored, const transport::Deadline& deadline,
               double& waiting);

 private:
  const std::unique_ptr<ActivationStore> store_;
  TransferLane lane_;  // uses the store: destroyed first
};

}  // namespace plumbline::engine
