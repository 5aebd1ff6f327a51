// PartitionedGraph: the forward graph, and an autograd node that runs the backward graph.
#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/autograd/saved_variable.h>

#include <algorithm>
#include <mutex>
#include <set>
#include <utility>

#include "runtime/backward/make_node.h"
#include "runtime/backward/requires_gradient.h"
#include "runtime/error.h"
#include "runtime/partition/run/backward_runner.h"
#include "runtime/partition/run/lower.h"
#include "runtime/partition/run/missing_tangents.h"
#include "runtime/partition/run/run.h"
#include "runtime/partition/trace/layout.h"
#include "runtime/types/aten.h"

namespace plumbline::partition {
namespace {

using torch::autograd::SavedVariable;
using torch::autograd::variable_list;

bool all(const std::vector<char>& flags) {
  return std::all_of(flags.begin(), flags.end(), [](char flag) { return flag; });
}

at::Tensor zeros_like_result(const JointResult& result) {
  std::vector<int64_t> sizes;
  for (const Extent& extent : result.shape) sizes.push_back(extent.value);
  return at::zeros(sizes, at::TensorOptions(types::to_aten(result.dtype)).device(types::to_aten(result.device)));
}

}  // namespace

/// Where an input of the backward comes from.
struct BackwardInput {
  enum class Kind : uint8_t { Number, Saved, Tangent };
  Kind kind = Kind::Number;
  int index = -1;
};

/// What PartitionedGraph and the nodes of its runs share.
struct PartitionedCall : std::enable_shared_from_this<PartitionedCall> {
  PartitionedCall(const graph::Graph& graph, JointTrace traced, Partition made);

  void run(std::span<const at::Tensor> inputs, std::vector<at::Tensor>& outputs);

  /// What the node of one run needs for its backward.
  const std::vector<NodeIndex>& gradients() const { return partition.backward.outputs; }
  std::vector<at::Tensor> backward_inputs(std::vector<at::Tensor> saved, variable_list& grads,
                                          const BackwardRunner& backward, const std::vector<char>& missing) const;
  BackwardRunner& backward_for(const std::vector<char>& missing);

  JointTrace trace;  // its graph is in `partition`
  Partition partition;
  std::vector<at::Tensor> attributes;  // by primal; undefined for inputs
  std::vector<NodeIndex> primals, tangents;
  std::vector<int> forward_primals;  // by input of the forward
  std::vector<BackwardInput> backward_sources;

 private:
  struct Alias {
    int made;    // what shares memory,
    int with;    // and with which: another of what the forward made,
    int primal;  // or a primal
  };

  void find_aliases();
  void find_sources();
  std::vector<at::Tensor> gather(std::span<const at::Tensor> inputs) const;
  void record(const std::vector<at::Tensor>& values, std::vector<at::Tensor>& made, std::vector<at::Tensor> states);
  void write_back(const std::vector<at::Tensor>& values, const std::vector<at::Tensor>& made) const;
  int first_saved() const { return trace.num_outputs + static_cast<int>(trace.written.size()); }

  std::optional<graph::Program> forward_, inference_;
  std::vector<Alias> aliases_;
  std::vector<char> needs_alias_;                          // by output: someone else has the tensor
  std::vector<char> clone_when_saved_;                     // by saved value: the forward's end overwrites it
  std::mutex backwards_mutex_;                             // of the map, not of its runners
  std::map<std::vector<char>, BackwardRunner> backwards_;  // by missing tangents
};

namespace {

/// One run's place in the autograd graph: its inputs are the gradients of the differentiable outputs, its edges lead to
/// the primals that have a gradient.
class PartitionedBackward : public backward::HalvedNode {
 public:
  std::shared_ptr<PartitionedCall> graph;
  std::vector<SavedVariable> saved;
  std::vector<at::Tensor> states;
  std::vector<int> primal_of_edge;

  std::string name() const override { return "PartitionedBackward"; }

  void will_release_variables() override { consume_ = true; }

  void release_variables() override {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (SavedVariable& value : saved) value.reset_data();
    if (!between_halves()) states.clear();
  }

 private:
  std::string second_derivative_error() const override {
    return "a partitioned graph has no second derivative; leave create_graph out";
  }

  variable_list full(variable_list& grads) override {
    variable_list result(primal_of_edge.size());
    const std::vector<char> missing = missing_among(grads);
    if (all(missing) && !missing.empty()) return result;
    BackwardRunner& backward = graph->backward_for(missing);
    variable_list gradients;
    std::vector<at::Tensor> inputs = graph->backward_inputs(take_saved(consume_), grads, backward, missing);
    backward.run(std::move(inputs), gradients, states);
    return by_edge(gradients, result);
  }

  /// Consumes what is saved: a graph that is retained cannot be run in halves.
  variable_list first_half(variable_list& grads, const std::vector<char>& valid) override {
    variable_list result(primal_of_edge.size());
    missing_ = missing_among(grads);
    if (all(missing_) && !missing_.empty()) return result;
    wanted_.assign(graph->primals.size(), 0);
    for (size_t e = 0; e < valid.size(); ++e)
      if (valid[e]) wanted_[primal_of_edge[e]] = 1;
    BackwardRunner& backward = graph->backward_for(missing_);
    variable_list gradients;
    std::vector<at::Tensor> inputs = graph->backward_inputs(take_saved(true), grads, backward, missing_);
    backward.run_first(wanted_, std::move(inputs), gradients, carried_, states);
    return by_edge(gradients, result);
  }

  variable_list second_half(const std::vector<char>&) override {
    variable_list result(primal_of_edge.size());
    if (all(missing_) && !missing_.empty()) return result;
    variable_list gradients;
    graph->backward_for(missing_).run_second(wanted_, std::exchange(carried_, {}), gradients, states);
    states.clear();
    return by_edge(gradients, result);
  }

  void forget_half() override { carried_.clear(); }

  variable_list by_edge(variable_list& gradients, variable_list& result) const {
    for (size_t e = 0; e < primal_of_edge.size(); ++e)
      if (should_compute_output(e)) result[e] = std::move(gradients[primal_of_edge[e]]);
    return std::move(result);
  }

  std::vector<char> missing_among(const variable_list& grads) const {
    std::vector<char> missing(graph->tangents.size(), 1);
    size_t next = 0;
    for (size_t t = 0; t < missing.size(); ++t)
      if (graph->trace.tangent_of[t] >= 0) missing[t] = !grads.at(next++).defined();
    return missing;
  }

  /// Throws as any autograd node does when a saved value has changed in place, or is gone.
  std::vector<at::Tensor> take_saved(bool consume) {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::vector<at::Tensor> values;
    values.reserve(saved.size());
    for (SavedVariable& value : saved) {
      values.push_back(value.unpack());
      if (consume) value.reset_data();
    }
    return values;
  }

  bool consume_ = false;

  // Between the halves.
  std::vector<char> wanted_, missing_;
  variable_list carried_;
};

}  // namespace

PartitionedCall::PartitionedCall(const graph::Graph& graph, JointTrace traced, Partition made)
    : trace(std::move(traced)), partition(std::move(made)) {
  trace.graph = {};
  primals = inputs_of_kind(partition.graph, JointKind::Primal);
  tangents = inputs_of_kind(partition.graph, JointKind::Tangent);
  PLUMBLINE_CHECK(primals.size() == trace.primals.size(), "a partition of another trace");
  PLUMBLINE_CHECK(tangents.size() == trace.tangent_of.size(), "a partition of another trace");
  PLUMBLINE_CHECK(partition.backward.outputs.size() == primals.size(), "one gradient for each primal");
  attributes.resize(primals.size());
  for (size_t p = 0; p < primals.size(); ++p)
    if (trace.primals[p].kind == PrimalSource::Kind::Attribute)
      attributes[p] = graph.attributes.at(trace.primals[p].index).tensor;
  forward_ = lower(partition.graph, partition.forward, trace.constants, partition.replayed);
  Subgraph only = partition.forward;
  only.outputs.resize(first_saved());
  only.ops = live_ops(partition.graph, only.ops, only.outputs);
  inference_ = lower(partition.graph, only, trace.constants, {});
  find_sources();
  find_aliases();
}

void PartitionedCall::find_sources() {
  std::vector<int> place(partition.graph.nodes.size(), -1);
  for (size_t p = 0; p < primals.size(); ++p) place[primals[p]] = static_cast<int>(p);
  for (const NodeIndex input : partition.forward.inputs) {
    PLUMBLINE_CHECK(place[input] >= 0, "the forward takes '" + partition.graph.nodes[input].name + "', no primal");
    forward_primals.push_back(place[input]);
  }
  std::vector<BackwardInput> source(partition.graph.nodes.size());
  using Kind = BackwardInput::Kind;
  for (size_t t = 0; t < tangents.size(); ++t) source[tangents[t]] = {Kind::Tangent, static_cast<int>(t)};
  for (size_t s = 0; s < partition.saved.size(); ++s) source[partition.saved[s]] = {Kind::Saved, static_cast<int>(s)};
  for (const NodeIndex input : partition.backward.inputs) backward_sources.push_back(source[input]);
}

/// Below autograd, no record says that a view belongs to its base. Outputs of the forward and kept values get the
/// version counter of the tensor whose memory they share, so that a change in place is noticed here as elsewhere.
void PartitionedCall::find_aliases() {
  const std::vector<JointNode>& nodes = partition.graph.nodes;
  const std::vector<NodeIndex>& made = partition.forward.outputs;
  const int end = first_saved() + static_cast<int>(partition.saved.size());
  std::vector<int> holders(nodes.size(), 0);  // by node: who has its tensor
  std::map<int32_t, Alias> first;             // by storage: who had it before
  std::set<int32_t> written;
  for (size_t p = 0; p < primals.size(); ++p) {
    ++holders[primals[p]];
    first.try_emplace(nodes[primals[p]].out.storage, Alias{-1, -1, static_cast<int>(p)});
  }
  for (const int p : trace.written) written.insert(nodes[primals[p]].out.storage);
  for (int i = 0; i < end; ++i) {
    if (made[i] == kNoNode) continue;
    const JointNode& node = nodes[made[i]];
    if (node.out.storage >= 0 && holders[made[i]] == 0) {
      const auto [known, is_new] = first.try_emplace(node.out.storage, Alias{-1, i, -1});
      if (!is_new) aliases_.push_back({i, known->second.with, known->second.primal});
    }
    holders[made[i]] += node.kind == JointKind::GetAttr ? 2 : 1;  // the program holds a constant
  }
  for (int i = 0; i < trace.num_outputs; ++i) needs_alias_.push_back(made[i] != kNoNode && holders[made[i]] > 1);
  for (const NodeIndex saved : partition.saved) {
    const int32_t storage = nodes[saved].out.storage;
    clone_when_saved_.push_back(storage >= 0 && written.contains(storage));
  }
}

std::vector<at::Tensor> PartitionedCall::gather(std::span<const at::Tensor> inputs) const {
  std::vector<at::Tensor> values = attributes;
  for (size_t p = 0; p < values.size(); ++p)
    if (trace.primals[p].kind == PrimalSource::Kind::Input) values[p] = inputs[trace.primals[p].index];
  return values;
}

void PartitionedCall::run(std::span<const at::Tensor> inputs, std::vector<at::Tensor>& outputs) {
  const std::vector<at::Tensor> values = gather(inputs);
  bool recording = false;
  if (c10::GradMode::is_enabled())
    for (size_t p = 0; p < values.size(); ++p)
      recording = recording || (gradients()[p] != kNoNode && backward::requires_gradient(values[p]));
  std::vector<at::Tensor> arguments, made, states;
  arguments.reserve(forward_primals.size());
  for (const int p : forward_primals) arguments.push_back(values[p]);
  run_lowered(recording ? *forward_ : *inference_, std::move(arguments), made,
              {graph::RandomStates::Mode::Record, &states});
  if (recording) record(values, made, std::move(states));
  write_back(values, made);
  made.resize(trace.num_outputs);
  outputs = std::move(made);
}

void PartitionedCall::record(const std::vector<at::Tensor>& values, std::vector<at::Tensor>& made,
                             std::vector<at::Tensor> states) {
  for (const Alias& alias : aliases_) {
    const at::Tensor& base = alias.primal >= 0 ? values[alias.primal] : made[alias.with];
    if (made[alias.made].defined() && base.defined() && made[alias.made].is_alias_of(base))
      made[alias.made].unsafeGetTensorImpl()->set_version_counter(base.unsafeGetTensorImpl()->version_counter());
  }
  const backward::NodeHandle handle = backward::make_node<PartitionedBackward>();
  auto& node = static_cast<PartitionedBackward&>(*handle);
  node.graph = shared_from_this();
  node.states = std::move(states);
  for (size_t s = 0; s < partition.saved.size(); ++s) {
    at::Tensor& value = made[first_saved() + s];
    node.saved.emplace_back(clone_when_saved_[s] ? copy_as_it_lies(value.detach()) : value, /*is_output=*/false);
    value = at::Tensor();
  }
  for (size_t p = 0; p < values.size(); ++p) {
    if (gradients()[p] == kNoNode || !backward::requires_gradient(values[p])) continue;
    node.primal_of_edge.push_back(static_cast<int>(p));
    node.add_next_edge(torch::autograd::impl::gradient_edge(values[p]));
  }
  for (const int output : trace.tangent_of) {
    if (output < 0) continue;
    if (needs_alias_[output]) made[output] = made[output].detach();
    torch::autograd::set_history(made[output], handle);
  }
}

void PartitionedCall::write_back(const std::vector<at::Tensor>& values, const std::vector<at::Tensor>& made) const {
  const c10::NoGradGuard no_grad;
  for (size_t w = 0; w < trace.written.size(); ++w) {
    const at::Tensor& target = values[trace.written[w]];
    if (!made[trace.num_outputs + w].is_same(target)) target.copy_(made[trace.num_outputs + w]);
  }
}

std::vector<at::Tensor> PartitionedCall::backward_inputs(std::vector<at::Tensor> saved, variable_list& grads,
                                                         const BackwardRunner& backward,
                                                         const std::vector<char>& missing) const {
  std::vector<int> grad_of(tangents.size(), -1);
  for (int t = 0, next = 0; t < static_cast<int>(tangents.size()); ++t)
    if (trace.tangent_of[t] >= 0) grad_of[t] = next++;
  std::vector<at::Tensor> inputs;
  inputs.reserve(backward_sources.size());
  for (const BackwardInput& source : backward_sources) {
    using Kind = BackwardInput::Kind;
    if (source.kind == Kind::Saved)
      inputs.push_back(std::move(saved[source.index]));
    else if (source.kind == Kind::Tangent && !missing[source.index])
      inputs.push_back(std::move(grads[grad_of[source.index]]));
    else if (source.kind == Kind::Tangent && backward.takes(tangents[source.index]))
      inputs.push_back(zeros_like_result(partition.graph.nodes[tangents[source.index]].out));
    else
      inputs.emplace_back();
  }
  return inputs;
}

BackwardRunner& PartitionedCall::backward_for(const std::vector<char>& missing) {
  const std::lock_guard<std::mutex> lock(backwards_mutex_);
  return backwards_.try_emplace(missing, partition, missing, trace.constants).first->second;
}

PartitionedGraph::PartitionedGraph(const graph::Graph& graph, JointTrace trace, Partition partition)
    : call_(std::make_shared<PartitionedCall>(graph, std::move(trace), std::move(partition))) {}
PartitionedGraph::~PartitionedGraph() = default;
PartitionedGraph::PartitionedGraph(PartitionedGraph&&) noexcept = default;

void PartitionedGraph::run(std::span<const at::Tensor> inputs, std::vector<at::Tensor>& outputs) {
  call_->run(inputs, outputs);
}

const Partition& PartitionedGraph::partition() const { return call_->partition; }

}  // namespace plumbline::partition
