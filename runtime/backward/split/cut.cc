#include "runtime/backward/split/cut.h"

#include <torch/csrc/autograd/functions/tensor.h>

#include <algorithm>
#include <utility>

#include "runtime/backward/make_node.h"

namespace plumbline::backward {

using torch::autograd::Edge;
using torch::autograd::FunctionPostHook;
using torch::autograd::FunctionPreHook;
using torch::autograd::Node;
using torch::autograd::variable_list;

namespace {

using PreHooks = std::vector<std::unique_ptr<FunctionPreHook>>;

/// Where an edge leads.
enum class Side { Nowhere, Inputs, Weights };

Side side_of(const Edge& edge, const GraphWalk& walk, const StageInputs& inputs) {
  if (!edge.is_valid()) return Side::Nowhere;
  if (inputs.contains(edge)) return Side::Inputs;
  return walk.reaches_input(walk.index(edge.function.get())) ? Side::Inputs : Side::Weights;
}

/// Sets an edge and returns the previous one. A node for a change in place of a view holds the changing operation's own
/// node, whose edges beyond the first are the same and must stay equal.
Edge exchange_edge(Node& node, uint32_t place, const Edge& edge) {
  if (auto* slices = dynamic_cast<torch::autograd::CopySlices*>(&node); slices && slices->fn && place > 0)
    slices->fn->next_edges()[place] = edge;
  return std::exchange(node.next_edges()[place], edge);
}

}  // namespace

/// Placed between a frontier node and P: keeps the node's gradients for P in the first half, passes them on in the
/// second. It has the node's sequence number, and so its turn among the summands at a node of P.
class Cut::Holder : public Node {
 public:
  explicit Holder(uint64_t sequence_nr) : Node(sequence_nr) {}

  uint32_t add(const Edge& edge) {
    input_metadata_.emplace_back(edge.function->input_metadata(edge.input_nr));
    return static_cast<uint32_t>(input_metadata_.size()) - 1;
  }
  variable_list apply(variable_list&& grads) override {
    if (num_outputs() > 0) return std::move(grads);
    held = std::move(grads);
    return {};
  }
  variable_list held;
};

class Cut::Capture : public FunctionPreHook {
 public:
  explicit Capture(variable_list& into) : into_(into) {}
  variable_list operator()(const variable_list& grads) override {
    into_ = grads;
    return grads;
  }

 private:
  variable_list& into_;
};

class Cut::Release : public FunctionPostHook {
 public:
  explicit Release(Node& node) : node_(node) {}
  variable_list operator()(const variable_list& outputs, const variable_list&) override {
    node_.release_variables();
    return outputs;
  }

 private:
  Node& node_;
};

struct Cut::Before {
  NodeHandle node;
  std::vector<Moved> edges;  // into P during the first half, into I after it
  variable_list grads;
  FunctionPreHook* capture = nullptr;
  // The hooks that ran in the first half and must not run again.
  PreHooks pre_hooks, tensor_pre_hooks;
  std::unordered_map<size_t, std::unique_ptr<FunctionPreHook>> retains_grad_hooks;

  void exchange_hooks() {
    pre_hooks.swap(node->pre_hooks());
    tensor_pre_hooks.swap(node->tensor_pre_hooks());
    retains_grad_hooks.swap(node->retains_grad_hooks());
  }
};

struct Cut::After {
  NodeHandle node, holder;
  std::vector<Moved> edges;  // into P
};

Cut::Cut(const GraphWalk& walk, const StageInputs& inputs, bool retain) : retain_(retain) {
  for (size_t i = 0; i < walk.nodes().size(); ++i) {
    if (!walk.reaches_input(static_cast<int>(i))) continue;
    Node& node = *walk.nodes()[i];
    const torch::autograd::edge_list& edges = std::as_const(node).next_edges();
    const bool frontier = std::any_of(edges.begin(), edges.end(),
                                      [&](const Edge& edge) { return side_of(edge, walk, inputs) == Side::Weights; });
    const bool divisible = frontier && node.post_hooks().empty() && is_divisible(node);
    if (divisible)
      cut_before(node, walk, inputs);
    else if (frontier)
      cut_after(node, walk, inputs);
    if (inputs.redirects()) redirect(node, inputs);
    if (!divisible && !retain_) release_when_done(node);
  }
}

Cut::~Cut() {
  take_hooks_out();
  for (const std::unique_ptr<Before>& before : before_) {
    put_back(before->edges);
    if (!before->capture) before->exchange_hooks();
  }
  for (After& after : after_) put_back(after.edges);
  put_back(redirected_);
}

void Cut::cut_before(Node& node, const GraphWalk& walk, const StageInputs& inputs) {
  auto before = std::make_unique<Before>();
  before->node = node.getptr();
  for (uint32_t e = 0; e < node.num_outputs(); ++e) {
    if (side_of(std::as_const(node).next_edge(e), walk, inputs) == Side::Weights)
      before->edges.push_back({&node, e, exchange_edge(node, e, Edge())});
  }
  auto capture = std::make_unique<Capture>(before->grads);
  before->capture = capture.get();
  node.add_pre_hook(std::move(capture));  // the last one: it sees the node's actual inputs
  before_.push_back(std::move(before));
}

void Cut::cut_after(Node& node, const GraphWalk& walk, const StageInputs& inputs) {
  After after{node.getptr(), make_node<Holder>(node.sequence_nr()), {}};
  Holder& holder = static_cast<Holder&>(*after.holder);
  for (uint32_t e = 0; e < node.num_outputs(); ++e) {
    const Edge& edge = std::as_const(node).next_edge(e);
    if (side_of(edge, walk, inputs) != Side::Weights) continue;
    const uint32_t place = holder.add(edge);
    after.edges.push_back({&node, e, exchange_edge(node, e, Edge(after.holder, place))});
  }
  after_.push_back(std::move(after));
}

void Cut::redirect(Node& node, const StageInputs& inputs) {
  for (uint32_t e = 0; e < node.num_outputs(); ++e) {
    const Edge& edge = std::as_const(node).next_edge(e);
    if (!edge.is_valid()) continue;
    const Edge instead = inputs.instead_of(edge);
    if (instead != edge) redirected_.push_back({&node, e, exchange_edge(node, e, instead)});
  }
}

void Cut::release_when_done(Node& node) {
  releases_.emplace_back(node.getptr(), node.add_post_hook(std::make_unique<Release>(node)));
}

void Cut::take_hooks_out() {
  for (const auto& [node, key] : releases_) node->del_post_hook(key);
  releases_.clear();
  for (const std::unique_ptr<Before>& before : before_) {
    if (!before->capture) continue;
    std::erase_if(before->node->pre_hooks(), [&](const auto& hook) { return hook.get() == before->capture; });
  }
}

void Cut::put_back(std::vector<Moved>& edges) {
  for (const Moved& moved : edges) exchange_edge(*moved.node, moved.place, moved.edge);
  edges.clear();
}

std::vector<Seed> Cut::turn() {
  take_hooks_out();
  put_back(redirected_);
  std::vector<Seed> seeds;
  for (const std::unique_ptr<Before>& before : before_) {
    Node& node = *before->node;
    std::vector<Moved> towards_inputs;
    for (uint32_t e = 0; e < node.num_outputs(); ++e) {
      Edge edge = exchange_edge(node, e, Edge());
      if (retain_ && edge.is_valid()) towards_inputs.push_back({&node, e, std::move(edge)});
    }
    put_back(before->edges);
    before->edges = std::move(towards_inputs);
    before->capture = nullptr;
    before->exchange_hooks();
    const bool halved = dynamic_cast<HalvedNode*>(&node) != nullptr;
    if (halved && !retain_) node.release_variables();
    if (before->grads.empty()) continue;  // it was not executed
    if (halved) std::fill(before->grads.begin(), before->grads.end(), at::Tensor());
    seeds.push_back({before->node, std::move(before->grads), node.name()});
  }
  for (After& after : after_) {
    Holder& holder = static_cast<Holder&>(*after.holder);
    for (const Moved& moved : after.edges) holder.next_edges().push_back(moved.edge);
    put_back(after.edges);
    if (!holder.held.empty()) seeds.push_back({after.holder, std::move(holder.held), after.node->name()});
  }
  after_.clear();
  if (!retain_) before_.clear();
  std::sort(seeds.begin(), seeds.end(),
            [](const Seed& a, const Seed& b) { return a.node->sequence_nr() > b.node->sequence_nr(); });
  return seeds;
}

}  // namespace plumbline::backward
