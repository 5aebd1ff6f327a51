#include "runtime/capture/annotate.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <unordered_set>

#include "runtime/capture/takes_gradient.h"
#include "runtime/capture/tensor_table.h"
#include "runtime/error.h"
#include "runtime/graph/run/kept_tensors.h"
#include "runtime/graph/run/program.h"
#include "runtime/graph/run/random_turn.h"

namespace plumbline::capture {
namespace {

class Annotator : public graph::NodeObserver {
 public:
  Annotator(graph::Graph& graph, const std::vector<at::Tensor>& inputs) : graph_(graph), kept_(graph, inputs) {
    for (const graph::Attribute& attribute : graph.attributes)
      if (attribute.tensor.defined() && attribute.value != graph::kNoValue)
        describe_tensor(attribute.value, attribute.tensor);
    for (size_t i = 0; i < inputs.size(); ++i) describe_tensor(graph.inputs[i].value, inputs[i]);
  }

  void before(size_t node, const graph::Frame& values) override {
    graph::for_each_mutation(graph_.nodes[node], [&](graph::ValueId v) { kept_.before_write(values.value(v)); });
  }

  void after(size_t node, const graph::Frame& values) override {
    if (!graph_.nodes[node].branches.empty()) allow_every_branch(graph_.nodes[node], values);
    graph::for_each_definition(graph_.nodes[node], [&](graph::ValueId v) { describe_result(v, values.value(v)); });
    graph::for_each_mutation(graph_.nodes[node],
                             [&](graph::ValueId v) { note_write(graph_.values[v].storage, values); });
  }

 private:
  void describe_tensor(graph::ValueId v, const at::Tensor& tensor) {
    graph::Value& value = graph_.values[v];
    value.kind = graph::ValueKind::Tensor;
    value.dtype = tensor.scalar_type();
    value.sizes = tensor.sizes().vec();
    value.requires_grad = takes_gradient(tensor);
    value.storage = storages_.number_of(tensor);
    values_in_.resize(storages_.size());
    if (value.storage >= 0) values_in_[value.storage].push_back(v);
  }

  void describe_number(graph::ValueId v, graph::ValueKind kind, at::ScalarType dtype) {
    graph::Value& value = graph_.values[v];
    value = graph::Value{};
    value.kind = kind;
    value.dtype = dtype;
  }

  void describe_result(graph::ValueId v, const c10::IValue& result) {
    if (result.isTensor() && result.toTensor().defined())
      describe_tensor(v, result.toTensor());
    else if (result.isInt())
      describe_number(v, graph::ValueKind::Int, at::kLong);
    else if (result.isDouble())
      describe_number(v, graph::ValueKind::Float, at::kDouble);
    else if (result.isBool())
      describe_number(v, graph::ValueKind::Bool, at::kBool);
  }

  /// Another run may take another branch: the results of a cond, and everything derived from them, require a gradient
  /// if any operand does.
  void allow_every_branch(const graph::Node& node, const graph::Frame& values) {
    bool from_gradient = false;
    graph::for_each_use(node,
                        [&](graph::ValueId v) { from_gradient = from_gradient || graph_.values[v].requires_grad; });
    if (!from_gradient || !node.grad_enabled) return;
    graph::for_each_definition(node, [&](graph::ValueId v) {
      const at::Tensor& result = values.value(v).toTensor();
      if (result.defined() && (result.is_floating_point() || result.is_complex()) && !result.requires_grad())
        result.requires_grad_(true);
    });
  }

  /// A write may give gradients to every value that shares the memory. From now on the tensor written in place is known
  /// by its newest value; older values keep their facts.
  void note_write(int32_t storage, const graph::Frame& values) {
    if (storage < 0) return;
    std::vector<graph::ValueId>& sharing = values_in_[storage];
    std::unordered_set<const c10::TensorImpl*> seen;
    std::vector<graph::ValueId> alive;
    for (size_t i = sharing.size(); i-- > 0;) {
      const c10::IValue& value = values.value(sharing[i]);
      if (!value.isTensor() || !value.toTensor().defined()) continue;  // released
      if (!seen.insert(value.toTensor().unsafeGetTensorImpl()).second) continue;
      graph_.values[sharing[i]].requires_grad = takes_gradient(value.toTensor());
      alive.push_back(sharing[i]);
    }
    std::reverse(alive.begin(), alive.end());
    sharing = std::move(alive);
  }

  graph::Graph& graph_;
  graph::KeptTensors kept_;
  StorageTable storages_;
  std::vector<std::vector<graph::ValueId>> values_in_;  // by storage, in the order of definition
};

}  // namespace

void annotate(graph::Graph& graph, const std::vector<at::Tensor>& inputs) {
  if (inputs.size() != graph.inputs.size())
    throw InputError("annotate: " + std::to_string(inputs.size()) + " inputs for a graph that takes " +
                     std::to_string(graph.inputs.size()));
  const graph::Program program(graph);
  std::vector<at::Tensor> outputs;
  const graph::RandomTurn generator_kept;
  Annotator annotator(graph, inputs);
  const c10::AutoGradMode grad_enabled(true);
  program.run(inputs, outputs, &annotator);
}

}  // namespace plumbline::capture
