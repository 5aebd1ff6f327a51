#include "runtime/split/module_pipe.h"

#include <torch/nn/module.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <utility>

namespace plumbline::split {

namespace {

/// Sets the mode of a module and of all its children; the destructor restores the mode of each.
class ModeFor {
 public:
  ModeFor(torch::nn::Module& module, bool training) {
    for (const std::shared_ptr<torch::nn::Module>& child : module.modules(/*include_self=*/false))
      before_.emplace_back(child.get(), child->is_training());
    before_.insert(before_.begin(), {&module, module.is_training()});
    module.train(training);
  }
  ~ModeFor() {
    // train() sets the children as well, and parents come first.
    for (const auto& [module, training] : before_)
      if (module->is_training() != training) module->train(training);
  }
  ModeFor(const ModeFor&) = delete;
  ModeFor& operator=(const ModeFor&) = delete;

 private:
  std::vector<std::pair<torch::nn::Module*, bool>> before_;
};

}  // namespace

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
  const ModeFor mode(*model.module, training);
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
