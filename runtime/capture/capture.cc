#include "runtime/capture/capture.h"

#include <ATen/core/grad_mode.h>
#include <torch/nn/module.h>

#include <algorithm>
#include <optional>

#include "runtime/capture/call.h"
#include "runtime/capture/meta/meta_device.h"
#include "runtime/capture/recorder.h"
#include "runtime/graph/run/kept_tensors.h"
#include "runtime/graph/run/random_turn.h"
#include "runtime/text/in_quotes.h"

namespace plumbline::capture {
namespace {

/// Forwards module events to the recorder under the modules' names in the root.
class NamingObserver : public ModuleObserver {
 public:
  NamingObserver(const torch::nn::Module& root, Recorder& recorder) : recorder_(recorder) {
    for (const auto& item : root.named_modules("", /*include_self=*/false))
      names_.emplace(item.value().get(), item.key());
    names_.emplace(&root, "");
  }
  void enter(const torch::nn::Module& module) override {
    const auto it = names_.find(&module);
    if (it == names_.end())
      throw CaptureError("capture: call() entered a module of class " + module.name() +
                         " that is not registered in the model; register_module() it");
    recorder_.enter_module(it->second, module.name());
  }
  void leave(const torch::nn::Module& module) override {
    if (names_.contains(&module)) recorder_.leave_module();
  }

 private:
  Recorder& recorder_;
  std::unordered_map<const torch::nn::Module*, std::string> names_;
};

bool any_on_meta(const std::vector<NamedTensor>& tensors) {
  return std::any_of(tensors.begin(), tensors.end(),
                     [](const NamedTensor& named) { return named.tensor.defined() && named.tensor.is_meta(); });
}

template <class Items>
std::vector<NamedTensor> named(const Items& items) {
  std::vector<NamedTensor> out;
  for (const auto& item : items) out.push_back({item.key(), item.value()});
  return out;
}

}  // namespace

graph::Graph capture(const torch::nn::Module& module, const ForwardFunction& forward,
                     const std::vector<NamedTensor>& inputs) {
  const std::vector<NamedTensor> buffers = named(module.named_buffers());
  for (const NamedTensor& buffer : buffers)
    if (buffer.tensor.defined() && !buffer.tensor.is_meta() && buffer.tensor.layout() != at::kStrided)
      throw CaptureError("capture: buffer " + in_quotes(buffer.name) +
                         " is not dense, so it could not be restored after the run; make it dense");
  const std::vector<NamedTensor> parameters = named(module.named_parameters());
  Recorder recorder(parameters, buffers, inputs);
  NamingObserver observer(module, recorder);
  std::vector<at::Tensor> arguments, outputs;
  for (const NamedTensor& input : inputs) arguments.push_back(input.tensor);
  {
    const graph::RandomTurn generator_kept;
    graph::KeptTensors kept_buffers;
    for (const NamedTensor& buffer : buffers) kept_buffers.keep(buffer.tensor);
    const c10::AutoGradMode grad_enabled(true);
    const ModuleObserverScope observing(&observer);
    std::optional<detail::MetaCaptureScope> on_meta;
    if (any_on_meta(parameters) || any_on_meta(buffers) || any_on_meta(inputs)) on_meta.emplace();
    const RecordingScope recording(recorder);
    outputs = forward(arguments);
  }
  graph::Graph graph = recorder.finish(outputs);
  graph::verify(graph);
  return graph;
}

}  // namespace plumbline::capture
