// From a module to its Pipe: capture and split in one step.
#pragma once

#include <functional>

#include "runtime/capture/capture.h"
#include "runtime/split/split.h"

namespace plumbline::split {

/// A model as the runtime accepts it: the root module, the call of its forward, and the names of the inputs in order.
struct ModelHandle {
  torch::nn::Module* module = nullptr;
  capture::ForwardFunction forward;
  std::vector<std::string> input_names;
};

/// Captures the model on `inputs` (one micro-batch) in training or evaluation mode, and splits it. The module is left
/// in that mode. An undefined input is None: forward gets None, and the pipe, which is valid for exactly these inputs,
/// takes only the defined ones (given_inputs).
Pipe make_pipe(const ModelHandle& model, const std::vector<at::Tensor>& inputs, bool training,
               const SplitOptions& options);

/// The inputs of the first stage of such a pipe: all except None.
std::vector<at::Tensor> given_inputs(const std::vector<at::Tensor>& inputs);
/// The same, appended to `given`.
void append_given(const std::vector<at::Tensor>& inputs, std::vector<at::Tensor>& given);

}  // namespace plumbline::split
