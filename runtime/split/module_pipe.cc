#include "runtime/split/module_pipe.h"

#include <torch/nn/module.h>

#include <algorithm>
#include <iterator>

namespace plumbline::split {

Pipe make_pipe(const ModelHandle& model, const std::vector<at::Tensor>& inputs, bool training,
               const SplitOptions& options) {
  if (inputs.size() != model.input_names.size())
    throw InputError("model: " + std::to_string(inputs.size()) + " inputs given, it takes " +
                     std::to_string(model.input_names.size()));
  std::vector<capture::NamedTensor> named;
  for (size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i].defined()) named.push_back({model.input_names[i], inputs[i]});
  const capture::ForwardFunction forward = [&](const std::vector<at::Tensor>& given) {
    std::vector<at::Tensor> all(inputs.size());
    auto next = given.begin();
    for (size_t i = 0; i < inputs.size(); ++i)
      if (inputs[i].defined()) all[i] = *next++;
    return model.forward(all);
  };
  model.module->train(training);
  return split(capture::capture(*model.module, forward, named), options);
}

void append_given(const std::vector<at::Tensor>& inputs, std::vector<at::Tensor>& given) {
  std::ranges::copy_if(inputs, std::back_inserter(given), &at::Tensor::defined);
}

std::vector<at::Tensor> given_inputs(const std::vector<at::Tensor>& inputs) {
  std::vector<at::Tensor> given;
  append_given(inputs, given);
  return given;
}

}  // namespace plumbline::split
