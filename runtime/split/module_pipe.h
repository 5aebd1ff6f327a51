// Captures and splits a module in one step.
#pragma once

#include <functional>

#include "runtime/capture/capture.h"
#include "runtime/split/split.h"

namespace plumbline::split {

/// A model as the runtime accepts it.
struct ModelHandle {
  torch::nn::Module* module = nullptr;   ///< the root module; not owned, and never null when used
  capture::ForwardFunction forward;      ///< calls the module's forward
  std::vector<std::string> input_names;  ///< in the order in which `forward` takes the inputs
};

/// Captures the model on `inputs` (one micro-batch) in training or evaluation mode, and splits it. Afterwards the
/// module and its children have the modes that they had before. An undefined input is None: `forward` receives None,
/// and the pipe takes only the defined inputs (given_inputs()), so it is valid only for calls with the same inputs
/// missing. Throws InputError for another number of inputs than input_names, and as capture() and split() do.
Pipe make_pipe(const ModelHandle& model, const std::vector<at::Tensor>& inputs, bool training,
               const SplitOptions& options);

/// Returns the inputs of the first stage of such a pipe: the defined ones, in order.
std::vector<at::Tensor> given_inputs(const std::vector<at::Tensor>& inputs);
/// Appends given_inputs(inputs) to `given`.
void append_given(const std::vector<at::Tensor>& inputs, std::vector<at::Tensor>& given);

}  // namespace plumbline::split
