#include "runtime/backward/recompute.h"

#include <ATen/autocast_mode.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/functions/accumulate_grad.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/autograd/saved_variable.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <unordered_set>

#include "runtime/backward/make_node.h"
#include "runtime/backward/requires_gradient.h"
#include "runtime/backward/split/split_backward.h"
#include "runtime/error.h"
#include "runtime/graph/graph.h"
#include "runtime/graph/run/random_turn.h"

namespace plumbline::backward {
namespace {

using AutogradNode = torch::autograd::Node;
using torch::autograd::variable_list;

std::string numbered(const char* what, size_t i, const at::Tensor& tensor) {
  return std::string(what) + " " + std::to_string(i) + " " + graph::describe(tensor);
}

/// Ends the graph of a block at the inputs of a first half. A leaf in its place would keep the input's memory until the
/// second half is over: tensors saved for that half hold their graph, and a graph holds its leaves.
struct EndOfBlock : AutogradNode {
  variable_list apply(variable_list&&) override {
    throw Error(
        "recompute: the block runs a backward of its own that goes on beyond its inputs; do not recompute this block");
  }
};

/// A block that was run again, with its graph.
struct Again {
  std::vector<at::Tensor> sources;  ///< by edge: the stand-in for the input or parameter it leads to
  std::vector<at::Tensor> roots, root_grads;
};

/// The block's node. Its edges lead to the inputs and parameters that require a gradient; its own inputs are the
/// gradients of the block's outputs.
class RecomputeNode : public HalvedNode {
 public:
  /// Sets edges and saved values; run_first() must follow.
  RecomputeNode(Block block, const std::vector<at::Tensor>& values) : block_(std::move(block)) {
    saved_.reserve(values.size());
    for (const at::Tensor& value : values) {
      saved_.emplace_back(value, /*is_output=*/false);
      if (!requires_gradient(value)) continue;
      value_of_edge_.push_back(saved_.size() - 1);
      add_next_edge(torch::autograd::impl::gradient_edge(value));
    }
  }

  std::string name() const override { return "RecomputeBackward"; }

  /// Runs the forward. Afterwards the differentiable outputs are this node's.
  void run_first(const std::vector<at::Tensor>& values, std::vector<at::Tensor>& outputs) {
    std::vector<at::Tensor> detached;
    std::vector<int64_t> versions;
    for (const at::Tensor& value : values) {
      detached.push_back(value.defined() ? value.detach() : value);
      // matmul() chooses its kernel by this mark, too: without it, the bits of the first forward might be others.
      if (value.defined() && value.requires_grad()) detached.back().requires_grad_();
      versions.push_back(value.defined() ? value._version() : 0);
    }
    {
      const c10::NoGradGuard no_grad;
      block_(detached, outputs);
    }
    for (size_t i = 0; i < values.size(); ++i)
      if (values[i].defined() && values[i]._version() != versions[i])
        throw InputError("recompute: the block changes " + numbered("its value", i, values[i]) +
                         " in place; let it change a clone");
    // Fresh tensors: an output may be an input, a view of one, or appear twice.
    for (at::Tensor& output : outputs)
      if (output.defined()) output = output.detach();
    watch_shared_memory(outputs);
    for (size_t i = 0; i < outputs.size(); ++i) {
      shapes_.push_back(outputs[i].defined() ? graph::describe(outputs[i]) : "undefined");
      if (!outputs[i].defined() || !torch::autograd::isDifferentiableType(outputs[i].scalar_type())) continue;
      output_of_input_.push_back(i);
      torch::autograd::set_history(outputs[i], getptr());
    }
  }

  void release_variables() override {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (torch::autograd::SavedVariable& saved : saved_) saved.reset_data();
  }

 private:
  std::string second_derivative_error() const override {
    return "recompute: a block that is run again has no second derivative; leave create_graph out";
  }

  variable_list full(variable_list& grads) override {
    Again again = run_again(grads, {});
    variable_list result(value_of_edge_.size());
    if (again.roots.empty()) return result;
    variable_list asked;
    std::vector<size_t> edges;
    for (size_t e = 0; e < result.size(); ++e) {
      if (!task_should_compute_output(e)) continue;
      asked.push_back(again.sources[e]);
      edges.push_back(e);
    }
    if (asked.empty()) return result;
    variable_list made = torch::autograd::grad(again.roots, asked, again.root_grads, /*retain_graph=*/false,
                                               /*create_graph=*/false, /*allow_unused=*/true);
    for (size_t i = 0; i < edges.size(); ++i) result[edges[i]] = std::move(made[i]);
    return result;
  }

  variable_list first_half(variable_list& grads, const std::vector<char>& wanted) override {
    Again again = run_again(grads, wanted);
    variable_list asked, made, result(wanted.size());
    for (size_t e = 0; e < wanted.size(); ++e)
      if (wanted[e]) asked.push_back(again.sources[e]);
    WeightBackward weights;
    if (!again.roots.empty())
      stage_backward_input(again.roots, again.root_grads, asked, made, weights, {.accumulate_into_inputs = false});
    made.resize(asked.size());
    for (size_t e = 0, i = 0; e < wanted.size(); ++e) {
      if (!wanted[e]) continue;
      result[e] = std::move(made[i++]);
      again.sources[e] = at::Tensor();
    }
    weights_ = std::move(weights);
    leaves_ = std::move(again.sources);
    return result;
  }

  variable_list second_half(const std::vector<char>& wanted) override {
    WeightBackward weights = std::move(weights_);
    const std::vector<at::Tensor> leaves = std::move(leaves_);
    leaves_.clear();
    variable_list result(wanted.size());
    if (!weights.pending()) return result;
    stage_backward_weight(weights);
    for (size_t e = 0; e < wanted.size(); ++e)
      if (wanted[e]) result[e] = std::move(leaves[e].mutable_grad());
    return result;
  }

  void forget_half() override {
    weights_ = WeightBackward();
    leaves_.clear();
  }

  /// Uses leaves in place of the values, except for the edges `ending`.
  Again run_again(const variable_list& grads, const std::vector<char>& ending) {
    Again again;
    std::vector<at::Tensor> values, outputs;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      for (const torch::autograd::SavedVariable& saved : saved_) values.push_back(saved.unpack());
    }
    check_shared_memory();
    for (at::Tensor& value : values)
      if (value.defined()) value = value.detach();
    const NodeHandle end = make_node<EndOfBlock>();
    for (size_t e = 0; e < value_of_edge_.size(); ++e) {
      at::Tensor& source = values[value_of_edge_[e]];
      if (!ending.empty() && ending[e])
        torch::autograd::set_history(source, end);
      else
        source.requires_grad_();
      again.sources.push_back(source);
    }
    {
      const at::AutoGradMode grad_mode(true);
      block_(values, outputs);
    }
    check_outputs(outputs);
    for (size_t i = 0; i < grads.size(); ++i) {
      const at::Tensor& output = outputs[output_of_input_[i]];
      if (!grads[i].defined() || !requires_gradient(output)) continue;
      again.roots.push_back(output);
      again.root_grads.push_back(grads[i]);
    }
    check_leaves(again);
    return again;
  }

  void check_outputs(const std::vector<at::Tensor>& outputs) const {
    const auto changed = [](const std::string& now, const std::string& before) {
      return Error("recompute: the block made " + now + ", at first " + before + "; it must do the same each time");
    };
    if (outputs.size() != shapes_.size())
      throw changed(std::to_string(outputs.size()) + " outputs", std::to_string(shapes_.size()));
    for (size_t i = 0; i < outputs.size(); ++i) {
      const std::string shape = outputs[i].defined() ? graph::describe(outputs[i]) : "undefined";
      if (shape != shapes_[i]) throw changed("output " + std::to_string(i) + " " + shape, shapes_[i]);
    }
  }

  /// A tensor that reached the block other than through its values would silently get no gradient.
  static void check_leaves(const Again& again) {
    std::unordered_set<const c10::TensorImpl*> known;
    for (const at::Tensor& leaf : again.sources) known.insert(leaf.unsafeGetTensorImpl());
    std::unordered_set<const AutogradNode*> seen;
    std::vector<const AutogradNode*> open;
    const auto visit = [&](const AutogradNode* node) {
      if (node && seen.insert(node).second) open.push_back(node);
    };
    torch::autograd::edge_list edges;  // the only owner of a leaf's node
    for (const at::Tensor& root : again.roots) edges.push_back(torch::autograd::impl::gradient_edge(root));
    for (const torch::autograd::Edge& edge : edges) visit(edge.function.get());
    while (!open.empty()) {
      const AutogradNode* const node = open.back();
      open.pop_back();
      for (const torch::autograd::Edge& edge : node->next_edges()) visit(edge.function.get());
      if (node->num_outputs() > 0) continue;
      const auto* const leaf = dynamic_cast<const torch::autograd::AccumulateGrad*>(node);
      if (leaf && !known.contains(leaf->variable.unsafeGetTensorImpl()))
        throw Error("recompute: the block uses a tensor " + graph::describe(leaf->variable) +
                    " that requires a gradient and is none of its inputs and parameters; list it");
    }
  }

  /// Outputs that share memory are separated here, so autograd would not notice that a change of one changes the
  /// others. (The saved value detects those that share memory with a value.)
  void watch_shared_memory(const std::vector<at::Tensor>& outputs) {
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (!outputs[i].defined() || !outputs[i].has_storage()) continue;
      const bool shared = std::any_of(outputs.begin(), outputs.end(), [&](const at::Tensor& other) {
        return &other != &outputs[i] && other.defined() && other.has_storage() && other.is_alias_of(outputs[i]);
      });
      if (!shared) continue;
      shared_.push_back(outputs[i].unsafeGetTensorImpl()->version_counter());
      shared_versions_.push_back(shared_.back().current_version());
    }
  }

  void check_shared_memory() const {
    for (size_t i = 0; i < shared_.size(); ++i)
      if (shared_[i].current_version() != shared_versions_[i])
        throw Error(
            "recompute: an output of the block that shares memory with another was changed in place; "
            "change a clone");
  }

  Block block_;
  std::vector<torch::autograd::SavedVariable> saved_;  // by value
  std::vector<size_t> value_of_edge_;
  std::vector<size_t> output_of_input_;
  std::vector<std::string> shapes_;  // by output
  std::vector<c10::VariableVersion> shared_;
  std::vector<uint32_t> shared_versions_;

  // State between the halves.
  WeightBackward weights_;
  std::vector<at::Tensor> leaves_;  // by edge of the second half
};

void refuse_autocast(const std::vector<at::Tensor>& values) {
  for (const at::Tensor& value : values)
    if (value.defined() && at::autocast::is_autocast_enabled(value.device().type()))
      throw InputError("recompute: the block is called inside an autocast region; enter the region in the block");
}

/// A functor, so that each copy keeps its own state.
struct SameRandomNumbers {
  Block block;
  c10::Device device;
  at::Tensor state = {};

  void operator()(std::span<const at::Tensor> values, std::vector<at::Tensor>& outputs) {
    if (state.defined()) {
      const graph::RandomTurn turn(state, device);
      return block(values, outputs);
    }
    state = graph::random_state(device);
    // As every later run begins. cuDNN's RNNs keep a state of their dropout apart from the generator's, which LibTorch
    // seeds anew at the first RNN after the generator's was set: in the middle of a stage's turn it would go on
    // instead.
    graph::restore_random_state(state, device);
    block(values, outputs);
  }
};

}  // namespace

void recompute_in_backward(Block block, std::span<const at::Tensor> inputs, std::span<const at::Tensor> parameters,
                           std::vector<at::Tensor>& outputs) {
  std::vector<at::Tensor> values(inputs.begin(), inputs.end());
  values.insert(values.end(), parameters.begin(), parameters.end());
  if (!c10::GradMode::is_enabled() || std::none_of(values.begin(), values.end(), &requires_gradient))
    return block(values, outputs);
  refuse_autocast(values);
  const NodeHandle node = make_node<RecomputeNode>(std::move(block), values);
  static_cast<RecomputeNode&>(*node).run_first(values, outputs);
}

Block with_same_random_numbers(Block block, c10::Device device) { return SameRandomNumbers{std::move(block), device}; }

}  // namespace plumbline::backward
