#include "runtime/partition/trace/eager_layouts.h"

#include <ATen/FunctionalTensorWrapper.h>
#include <c10/core/GradMode.h>

#include <sstream>

#include "runtime/graph/run/random_turn.h"
#include "runtime/partition/trace/layout.h"

namespace plumbline::partition {
namespace {

class Strides : public graph::NodeObserver {
 public:
  Strides(const graph::Graph& graph, std::vector<std::vector<int64_t>>& strides) : graph_(graph), strides_(strides) {}
  void before(size_t, const graph::Frame&) override {}
  void after(size_t node, const graph::Frame& values) override {
    graph::for_each_definition(graph_.nodes[node], [&](graph::ValueId v) {
      const c10::IValue& value = values.value(v);
      if (!value.isTensor() || !value.toTensor().defined() || value.toTensor().layout() != c10::kStrided) return;
      strides_[v] = value.toTensor().strides().vec();
    });
  }

 private:
  const graph::Graph& graph_;
  std::vector<std::vector<int64_t>>& strides_;
};

at::Tensor copy_of(const at::Tensor& tensor) {
  if (tensor.layout() == c10::kStrided) return copy_as_it_lies(tensor);
  return tensor.detach().clone().requires_grad_(tensor.requires_grad());
}

}  // namespace

EagerLayouts::EagerLayouts(const graph::Graph& graph, const std::vector<at::Tensor>& inputs)
    : strides_(graph.values.size()) {
  const c10::AutoGradMode grad(true);
  const graph::RandomTurn generator_kept;
  graph::Graph own = graph;
  for (graph::Attribute& attribute : own.attributes)
    if (attribute.value != graph::kNoValue) attribute.tensor = copy_of(attribute.tensor);
  std::vector<at::Tensor> copies, outputs;
  for (const at::Tensor& input : inputs) copies.push_back(copy_of(input));
  Strides observer(own, strides_);
  graph::Program(own).run(copies, outputs, &observer);
}

std::string EagerLayouts::restore(const graph::Node& node, const graph::Frame& values) const {
  namespace functional = at::functionalization::impl;
  std::string wrong;
  graph::for_each_definition(node, [&](graph::ValueId v) {
    const c10::IValue& value = values.value(v);
    if (strides_[v].empty() || !value.isTensor() || !functional::isFunctionalTensor(value.toTensor())) return;
    const at::Tensor& tensor = value.toTensor();
    auto* const wrapper = functional::unsafeGetFunctionalWrapper(tensor);
    const at::Tensor plain = wrapper->value();
    if (lies_so(plain, strides_[v])) return;
    const at::Tensor restored = wrapper->isBaseTensor() ? laid_out(plain, strides_[v]) : at::Tensor();
    if (restored.defined()) {
      functional::replace_(tensor, restored);
      functional::commit_update(tensor);
      functional::sync(tensor);
      return;
    }
    std::ostringstream text;
    text << "%" << v << " has strides " << at::IntArrayRef(strides_[v]) << " in eager mode and " << plain.strides()
         << " in a joint graph";
    wrong = text.str();
  });
  return wrong;
}

}  // namespace plumbline::partition
