// StepBuffers: the state of a running step. An engine owns one StepBuffers and lends it to each step, so that the
// vectors keep their memory from step to step and actions need not allocate them.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "runtime/engine/offload/host_transfers.h"
#include "runtime/engine/step/tensor_transfer.h"
#include "runtime/schedule/schedule.h"

namespace plumbline::engine {

/// The work that the I of a micro-batch leaves to its W.
enum class WeightHalf : uint8_t {
  None,          ///< no I was executed, or the loss does not depend on the stage
  FullBackward,  ///< the full backward, since no gradient of an input is needed
  Weights,       ///< StageRunner::backward_weight()
  UserWork,      ///< the result of EngineOptions::weight_work
};

/// One micro-batch in one of this rank's stages, from its forward to the end of its backward.
struct MicrobatchState {
  std::vector<at::Tensor> inputs;                 // by graph input
  std::vector<PendingReceive> pending_inputs;     // by graph input
  std::vector<at::Tensor> outputs;                // by graph output; without memory once released
  std::vector<int> remaining_consumers;           // by graph output: consumers that have not received it yet
  std::vector<PendingReceive> pending_gradients;  // by outgoing channel
  std::vector<at::Tensor> input_grads;            // by graph input
  at::Tensor loss;
  std::vector<at::Tensor> local_losses;
  WeightHalf weight_half = WeightHalf::None;
  std::function<void()> user_work;
  SavedValues saved;         // recorded if it will be offloaded
  StoredActivations stored;  // between OFFLOAD and the end of RELOAD

  /// Drops the values but keeps the memory of the vectors.
  void clear() {
    inputs.clear();
    pending_inputs.clear();
    outputs.clear();
    remaining_consumers.clear();
    pending_gradients.clear();
    input_grads.clear();
    loss.reset();
    local_losses.clear();
    weight_half = WeightHalf::None;
    user_work = nullptr;
    saved.clear();
    stored = StoredActivations();
  }
};

/// A pending send: the action to which it belongs, and the tensor from whose memory it is sent.
struct PendingSend {
  schedule::Action by;
  at::Tensor tensor;
  transport::Request request;
};

struct StepBuffers {
  std::vector<MicrobatchState> microbatches;  // by index of the rank's stage, then by micro-batch
  std::vector<PendingSend> sends;
  std::vector<at::Tensor> roots, root_grads;  // of the current backward
  std::vector<char> executed;                 // by action of the running custom function
  std::vector<char> sent;                     // by send of the running group

  void clear() {
    for (MicrobatchState& microbatch : microbatches) microbatch.clear();
    sends.clear();
    roots.clear();
    root_grads.clear();
  }
};

}  // namespace plumbline::engine
