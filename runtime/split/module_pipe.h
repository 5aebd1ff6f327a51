// From a module to its Pipe: capture and split in one step.
#pragma once

#include <functional>

#include "runtime/capture/capture.h"
#include "runtime/split/split.h"

namespace plumbline::split {

/// A model as the runtime takes it: the root module, how its forward is called, and the names of the inputs in order.
struct ModelHandle {
  torch::nn::Module* module = nullptr;
  capture::ForwardFunction forward;
  std::vector<std::string> input_names;
};

/// Captures the model on `inputs` (one micro-batch) in training or evaluation mode, and splits it.
/// The module is left in that mode. An undefined input is None: forward is given it so, and the pipe, which is for just
/// these inputs, takes those that are there (given_inputs).
Pipe make_pipe(const ModelHandle& model, const std::vector<at::Tensor>& inputs, bool training,
               const SplitOptions& options);

/// What the first stage of such a pipe takes: the inputs without those that are None.
std::vector<at::Tensor> given_inputs(const std::vector<at::Tensor>& inputs);
/// The same, appended to `given`.
void append_given(const std::vector<at::Tensor>& inputs, std::vector<at::Tensor>& given);

}  // namespace plumbline::split
