// HostTransfers: executes a rank's OFFLOAD and RELOAD actions.
//
// An OFFLOAD moves storages out of the computing memory: those of the tensors that autograd still saves for the
// backward of a stage and micro-batch, and those of the stage's inputs from other stages. The storages of parameters,
// buffers and the batch stay, since others own them. Each storage is one block of the store: tensors that share a
// storage share its block. If another tensor of the step holds the storage, too, it is copied into the store and stays
// in memory until that tensor lets go of it.
//
// One transfer thread writes and reads the blocks, in the order of the actions, beside the computations. It drops its
// reference to a storage as soon as the store has the block, and allocates memory when it reads the block.
#pragma once

#include <memory>
#include <span>

#include "runtime/engine/offload/activation_store.h"
#include "runtime/engine/offload/saved_values.h"
#include "runtime/engine/offload/transfer_lane.h"

namespace plumbline::engine {

/// The offloaded tensors of one stage and micro-batch, from the OFFLOAD until await_reload() has returned.
struct StoredActivations {
  std::vector<std::shared_ptr<SavedValue>> values;  ///< saved by autograd's nodes; shared with them
  std::vector<std::shared_ptr<SavedValue>> inputs;  ///< the stage's inputs
  /// By number of the block: its bytes, undefined until the transfer thread has read them for a RELOAD. Null: nothing
  /// is offloaded.
  std::shared_ptr<std::vector<at::Tensor>> blocks;
  uint64_t reload = 0;  ///< the number of the RELOAD's transfer (TransferLane::begin); 0: no RELOAD yet
};

/// Owns the store and the transfer thread. All functions must be called on one thread, that of the engine.
class HostTransfers {
 public:
  explicit HostTransfers(std::unique_ptr<ActivationStore> store) : store_(std::move(store)) {}

  /// Takes the storages of the values that `saved` has alive and of the defined `inputs`, and begins to write them to
  /// the store. Leaves out a value or an input whose storage a tensor in `kept` has, and one without bytes. Those that
  /// are taken have no storage from now on and are listed in `stored`, which must be empty before. Does not block.
  void offload(int stage, int microbatch, SavedValues& saved, std::span<const at::Tensor> inputs,
               std::span<const at::Tensor> kept, StoredActivations& stored);

  /// Begins to read back the blocks of the inputs and of the values that a node of autograd still has, and to drop all
  /// blocks from the store. Does not block.
  void reload(int stage, int microbatch, StoredActivations& stored);

  /// Waits for the end of the reload, gives the values and inputs their storages back, and empties `stored`. Does
  /// nothing if nothing is offloaded. Call it before each computation of the stage and micro-batch. Adds the seconds of
  /// the wait to `waiting`. Throws Error if no RELOAD followed the OFFLOAD, TimeoutError at the deadline, and the first
  /// error of any transfer so far, also of another stage and micro-batch.
  void await_reload(int stage, int microbatch, StoredActivations& stored, const transport::Deadline& deadline,
                    double& waiting);

 private:
  const std::shared_ptr<ActivationStore> store_;  // also of a transfer that does not end
  TransferLane lane_;
};

}  // namespace plumbline::engine
