#include "runtime/split/module_pipe.h"

#include <torch/nn/module.h>

namespace plumbline {

Pipe make_pipe(const ModelHandle& model, const std::vector<at::Tensor>& inputs, bool training,
               const SplitOptions& options) {
  if (inputs.size() != model.input_names.size())
    throw InputError("model: " + std::to_string(inputs.size()) + " inputs given, it takes " +
                     std::to_string(model.input_names.size()));
  std::vector<NamedTensor> named;
  for (size_t i = 0; i < inputs.size(); ++i) named.push_back({model.input_names[i], inputs[i]});
  model.module->train(training);
  return split(capture(*model.module, model.forward, named), options);
}

}  // namespace plumbline
