#include "runtime/partition/trace/trace.h"

#include <ATen/ops/ones_like.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <optional>

#include "runtime/capture/capture.h"
#include "runtime/graph/as_captured.h"
#include "runtime/graph/io/text.h"
#include "runtime/graph/run/program.h"
#include "runtime/graph/run/random_turn.h"
#include "runtime/partition/trace/eager_layouts.h"
#include "runtime/partition/trace/functional_tensors.h"
#include "runtime/partition/trace/joint_recorder.h"
#include "runtime/partition/trace/products.h"

namespace plumbline::partition {
namespace {

void check(const graph::Graph& graph, const std::vector<at::Tensor>& inputs) {
  for (const graph::GraphInput& input : graph.inputs)
    if (graph.values[input.value].kind != graph::ValueKind::Tensor)
      throw InputError("trace: input \"" + input.name +
                       "\" is a number, which a joint graph would freeze; give a tensor, or write the number into the "
                       "model");
  if (const std::string why = graph::why_not_runnable(graph, inputs); !why.empty()) throw InputError("trace: " + why);
  for (size_t i = 0; i < graph.nodes.size(); ++i)
    for (const graph::Argument& argument : graph.nodes[i].arguments)
      if (argument.constant.isGenerator())
        throw capture::CaptureError("trace: at " + c10::toString(graph.nodes[i].op->operator_name()) + ", node " +
                                    std::to_string(i) +
                                    ": an explicit random generator, whose state a replay would not "
                                    "follow; use the default generator");
}

/// Tells the recorder which node of the graph its calls come from, and gives the results their eager strides.
class Places : public graph::NodeObserver {
 public:
  Places(const graph::Graph& graph, const EagerLayouts& layouts, JointRecorder& recorder)
      : graph_(graph), layouts_(layouts), recorder_(recorder) {}
  void before(size_t node, const graph::Frame&) override {
    const graph::Node& called = graph_.nodes[node];
    recorder_.set_place("node " + std::to_string(node) + " (" + to_text(graph_, called) + ")");
    recorder_.set_called(called.op->operator_name());
  }
  void after(size_t node, const graph::Frame& values) override {
    const std::string wrong = layouts_.restore(graph_.nodes[node], values);
    if (!wrong.empty()) recorder_.refuse(wrong + ", so that its bits could differ; write it out of place");
  }

 private:
  const graph::Graph& graph_;
  const EagerLayouts& layouts_;
  JointRecorder& recorder_;
};

/// One trace: the leaves that stand for what the graph owns and is given, and what comes out of them.
class Tracing {
 public:
  Tracing(const graph::Graph& graph, const std::vector<at::Tensor>& inputs) : graph_(graph) {
    use_products_with_own_gradient(graph_);
    layouts_.emplace(graph_, inputs);
    for (size_t i = 0; i < graph_.attributes.size(); ++i) {
      graph::Attribute& attribute = graph_.attributes[i];
      if (attribute.value == graph::kNoValue) continue;
      const std::string& name = attribute.name;
      if (attribute.kind == graph::AttributeKind::Constant) {
        attribute.tensor = functional_leaf(attribute.tensor);
        recorder_.add_constant(name, at::functionalization::impl::from_functional_tensor(attribute.tensor));
        constants_.push_back({name, attribute.tensor});
        continue;
      }
      trace_.static_inputs.push_back(static_cast<int>(leaves_.size()));
      attribute.tensor = add_primal(attribute.tensor, {PrimalSource::Kind::Attribute, static_cast<int>(i)}, name);
    }
    for (size_t i = 0; i < inputs.size(); ++i)
      inputs_.push_back(add_primal(inputs[i], {PrimalSource::Kind::Input, static_cast<int>(i)}, graph_.inputs[i].name));
  }

  JointTrace run() {
    const std::vector<at::Tensor> outputs = forward();
    const std::vector<NodeIndex> gradients = backward(outputs);
    trace_.graph = recorder_.finish(forward_outputs_, gradients);
    for (const JointNode& node : trace_.graph.nodes)
      if (node.kind == JointKind::GetAttr)
        trace_.constants.emplace(node.attribute, recorder_.constants().at(node.attribute));
    return std::move(trace_);
  }

  /// Throws what the recorder refused, whatever became of the exception on its way.
  void rethrow_refusal() const {
    if (recorder_.refusal()) throw capture::CaptureError(*recorder_.refusal());
  }

 private:
  at::Tensor add_primal(const at::Tensor& tensor, PrimalSource source, const std::string& name) {
    recorder_.set_place("primal \"" + name + "\"");
    leaves_.push_back(functional_leaf(tensor));
    names_.push_back(name);
    trace_.primals.push_back(source);
    recorder_.add_input(JointKind::Primal, at::functionalization::impl::from_functional_tensor(leaves_.back()));
    return leaves_.back();
  }

  std::vector<at::Tensor> forward() {
    std::vector<at::Tensor> outputs;
    const FunctionalRun functional(recorder_);
    Places places(graph_, *layouts_, recorder_);
    graph::Program(graph_).run(inputs_, outputs, &places);
    recorder_.set_place("");
    for (const at::Tensor& output : outputs)
      forward_outputs_.push_back(output.defined() ? recorder_.node_of(plain(output)) : kNoNode);
    trace_.num_outputs = static_cast<int>(outputs.size());
    for (const auto& [name, constant] : constants_)
      if (at::functionalization::impl::unsafeGetFunctionalWrapper(constant)->has_data_mutation())
        recorder_.refuse("the graph writes its constant \"" + name + "\"; make it a buffer");
    for (size_t i = 0; i < leaves_.size(); ++i) find_written(static_cast<NodeIndex>(i));
    return outputs;
  }

  void find_written(NodeIndex primal) {
    const std::string name = "\"" + names_[primal] + "\"";
    auto* wrapper = at::functionalization::impl::unsafeGetFunctionalWrapper(leaves_[primal]);
    if (wrapper->has_metadata_mutation())
      recorder_.refuse("the graph changes the shape of " + name + " in place; a replay could not give that back");
    const NodeIndex now = recorder_.node_of(plain(leaves_[primal]));
    if (now == primal) return;
    const int32_t storage = recorder_.node(primal).out.storage;
    for (size_t i = 0; i < leaves_.size(); ++i)
      if (static_cast<NodeIndex>(i) != primal && recorder_.node(static_cast<NodeIndex>(i)).out.storage == storage)
        recorder_.refuse("the graph writes " + name + ", whose memory \"" + names_[i] +
                         "\" shares; clone() one of them");
    recorder_.nodes()[primal].epilogue_mutation = true;
    trace_.written.push_back(primal);
    forward_outputs_.push_back(now);
  }

  std::vector<NodeIndex> backward(const std::vector<at::Tensor>& outputs) {
    std::vector<at::Tensor> roots, tangents, wanted;
    recorder_.set_mark(JointMark::IsBackward);
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (!outputs[i].defined() || !outputs[i].requires_grad()) continue;
      roots.push_back(outputs[i]);
      trace_.tangent_of.push_back(static_cast<int>(i));
      const at::Tensor value = at::functionalization::impl::from_functional_tensor(outputs[i]).detach();
      tangents.push_back(functional_leaf(at::ones_like(value)));
      recorder_.add_input(JointKind::Tangent, at::functionalization::impl::from_functional_tensor(tangents.back()));
    }
    for (const at::Tensor& leaf : leaves_)
      if (leaf.requires_grad()) wanted.push_back(leaf);
    std::vector<NodeIndex> gradients(leaves_.size(), kNoNode);
    if (roots.empty() || wanted.empty()) return gradients;
    recorder_.set_place("in the backward");
    const FunctionalRun functional(recorder_);
    const std::vector<at::Tensor> found = torch::autograd::grad(roots, wanted, tangents, false, false, true);
    size_t next = 0;
    for (size_t i = 0; i < leaves_.size(); ++i) {
      if (!leaves_[i].requires_grad()) continue;
      const at::Tensor& gradient = found[next++];
      if (gradient.defined()) gradients[i] = recorder_.node_of(plain(gradient));
    }
    return gradients;
  }

  graph::Graph graph_;  // whose attributes are functional
  std::optional<EagerLayouts> layouts_;
  JointRecorder recorder_;
  JointTrace trace_;
  std::vector<at::Tensor> leaves_;  // by primal
  std::vector<std::string> names_;  // by primal
  std::vector<at::Tensor> inputs_;
  std::vector<std::pair<std::string, at::Tensor>> constants_;
  std::vector<NodeIndex> forward_outputs_;
};

}  // namespace

JointTrace trace_joint(const graph::Graph& graph, const std::vector<at::Tensor>& inputs) {
  check(graph, inputs);
  Tracing tracing(graph, inputs);
  const graph::RandomTurn generator_kept;
  try {
    return tracing.run();
  } catch (const std::exception&) {
    tracing.rethrow_refusal();
    throw;
  }
}

}  // namespace plumbline::partition
