#include "runtime/partition/budget/peak_model.h"

#include <algorithm>
#include <utility>

#include "runtime/partition/budget/budget.h"
#include "runtime/partition/joint/effects.h"

namespace plumbline::partition {
namespace {

constexpr int32_t kNever = -1, kAlways = INT32_MAX;

bool is_tensor(const JointNode& node) { return node.out.kind == JointResult::Kind::Tensor; }
bool is_scalar(const JointNode& node) { return node.out.kind == JointResult::Kind::Scalar; }

}  // namespace

PeakModel::PeakModel(const CutInput& input)
    : input_(input),
      count_(static_cast<NodeIndex>(input.graph.nodes.size())),
      halves_(halves_of(input)),
      memory_(input.graph, input.edges) {
  find_bases();
  find_rules();
  cost_.assign(count_, 0);
  for (NodeIndex i = 0; i < count_; ++i)
    // Views and getitems cost nothing.
    if (input_.graph.nodes[i].kind == JointKind::Call && !is_view(i))
      cost_[i] = recomputation_cost(input_.graph.nodes[i]);
  saved_.assign(count_, 0);
  in_forward_ = in_backward_ = again_ = placed_ = saved_;
  last_use_.assign(count_, kNever);
  phase_.assign(memory_.shares.size(), 0);
  holders_.assign(2 * memory_.shares.size(), 0);
}

void PeakModel::find_bases() {
  const JointGraph& graph = input_.graph;
  base_.resize(count_);
  for (NodeIndex i = 0; i < count_; ++i) {
    base_[i] = i;
    if (memory_.begin(i) == memory_.end(i) || !is_view(i)) continue;
    NodeIndex viewed = kNoNode;
    int others = 0;
    for (const NodeIndex input : input_.edges.inputs(i))
      if (!is_scalar(graph.nodes[input]) && std::exchange(viewed, input) != kNoNode) ++others;
    if (viewed == kNoNode || others > 0) continue;
    // A getitem of a tuple that is not itself a view makes no memory, yet it is the value that can be saved.
    const bool of_views = is_tensor(graph.nodes[viewed]) || base_[viewed] != viewed;
    if (of_views) base_[i] = base_[viewed];
  }
}

void PeakModel::find_rules() {
  const JointGraph& graph = input_.graph;
  given_.assign(count_, 0);
  made_ = savable_ = forced_ = reads_tangent_ = is_getitem_ = is_tuple_ = given_;
  const std::vector<char> late = ran_in_backward(graph, input_.edges);
  // By result that makes memory: whether it is overwritten before the backward; whether it is tagged, so that no view
  // of it may be saved in its place either.
  std::vector<char> lost(memory_.shares.size(), 0), again = lost;
  for (NodeIndex i = 0; i < count_; ++i) {
    const JointNode& node = graph.nodes[i];
    const auto inputs = input_.edges.inputs(i);
    if (node.kind == JointKind::Primal && is_tensor(node) && input_.policy.overwritten(input_.ops.facts[i]))
      lost[memory_.begin(i)] = 1;
    given_[i] = node.is_input() || node.kind == JointKind::GetAttr;
    is_getitem_[i] = node.kind == JointKind::GetItem;
    is_tuple_[i] = node.out.kind == JointResult::Kind::Tuple;
    if (node.kind == JointKind::Tangent) tangents_.push_back(i);
    for (const NodeIndex input : inputs)
      if (graph.nodes[input].kind == JointKind::Tangent) reads_tangent_[i] = 1;
    if (given_[i] || halves_.only_backward[i]) continue;
    // A getitem of a call that the forward makes is made there as well.
    made_[i] = halves_.in_forward[i] || (is_getitem_[i] && made_[inputs[0]]);
    if (must_recompute(node))
      for (int32_t r = memory_.begin(i); r < memory_.end(i); ++r) again[memory_.origin[r]] = 1;
    const bool tagged = is_tensor(node) && again[memory_.origin[memory_.begin(i)]];
    // A value that only the backward uses runs there. It may be saved if the model's forward made it.
    savable_[i] = (is_tensor(node) || is_scalar(node)) && !must_recompute(node) && !tagged && (made_[i] || !late[i]);
    forced_[i] = runs_once(node) || (is_getitem_[i] && forced_[inputs[0]]);
    if (!is_view(i))
      for (const NodeIndex input : inputs)
        if (is_tensor(graph.nodes[input]) && lost[memory_.origin[memory_.begin(input)]]) forced_[i] = 1;
  }
}

int64_t PeakModel::bytes(NodeIndex node) const {
  int64_t sum = 0;
  for (int32_t r = memory_.begin(node); r < memory_.end(node); ++r) sum += memory_.bytes[r];
  return sum;
}

int64_t PeakModel::floor() const {
  const JointGraph& graph = input_.graph;
  // A reverse walk finds the calls that must run: the forward's, and those that the backward's outputs need and the
  // forward cannot make.
  std::vector<char> runs(count_, 0);
  for (const NodeIndex output : graph.outputs)
    if (output != kNoNode) runs[output] = 1;
  for (NodeIndex i = count_ - 1; i >= 0; --i)
    if (runs[i] && (halves_.in_forward[i] || halves_.only_backward[i]))
      for (const NodeIndex input : input_.edges.inputs(i)) runs[input] = 1;
  // By result that makes memory.
  std::vector<NodeIndex> counted_for(memory_.shares.size(), kNoNode);
  std::vector<char> of_output(memory_.shares.size(), 0);
  int64_t outputs = 0, most = 0;
  const auto for_each_origin = [&](NodeIndex value, auto&& visit) {
    for (int32_t r = memory_.begin(value); r < memory_.end(value); ++r) visit(memory_.origin[r]);
  };
  for (const NodeIndex output : graph.forward_outputs())
    if (output != kNoNode)
      for_each_origin(output, [&](int32_t r) { outputs += std::exchange(of_output[r], 1) ? 0 : memory_.bytes[r]; });
  for (NodeIndex i = 0; i < count_; ++i) {
    if (!runs[i] || given_[i]) continue;
    const bool beside_outputs = halves_.only_backward[i];
    int64_t bytes = beside_outputs ? outputs : 0;
    const auto count = [&](NodeIndex value) {
      for_each_origin(value, [&](int32_t r) {
        if (std::exchange(counted_for[r], i) != i && !(beside_outputs && of_output[r])) bytes += memory_.bytes[r];
      });
    };
    count(i);
    for (const NodeIndex input : input_.edges.inputs(i)) count(input);
    most = std::max(most, bytes);
  }
  return most;
}

void PeakModel::make_backward() {
  std::fill(in_backward_.begin(), in_backward_.end(), 0);
  for (const NodeIndex output : input_.graph.backward_outputs())
    if (output != kNoNode) in_backward_[output] = 1;
  for (NodeIndex i = count_ - 1; i >= 0; --i) {
    if (halves_.stays_in_backward[i]) in_backward_[i] = 1;
    if (!in_backward_[i] || saved_[i] || given_[i]) continue;
    for (const NodeIndex input : input_.edges.inputs(i)) in_backward_[input] = 1;
  }
  // In autograd's order: the calls from the first that reads a tangent on, each after the calls it needs; before them
  // the calls that must run.
  std::fill(placed_.begin(), placed_.end(), 0);
  backward_.clear();
  NodeIndex first = 0;
  while (first < count_ && !(in_backward_[first] && reads_tangent_[first])) ++first;
  if (first == count_) first = 0;
  NodeIndex waiting = 0;
  for (NodeIndex i = 0; i < count_; ++i) {
    const bool must_run = halves_.stays_in_backward[i];
    if (!in_backward_[i] || (i < first && !must_run)) continue;
    if (must_run && input_.graph.nodes[i].writes)
      for (; waiting < i; ++waiting)
        if (in_backward_[waiting]) collect({&waiting, 1});
    collect({&i, 1});
  }
  // The outputs not placed so far come last, all together.
  collect(input_.graph.backward_outputs());
  if (input_.policy.order.raises_getitems) raise_getitems(backward_, placed_);
}

/// Moves every getitem directly behind its call. `among`: by node, whether it is one of the calls.
void PeakModel::raise_getitems(std::vector<NodeIndex>& calls, const std::vector<char>& among) {
  pending_.clear();
  for (const NodeIndex i : calls) {
    if (is_getitem_[i] && among[input_.edges.inputs(i)[0]]) continue;
    const size_t begin = pending_.size();
    pending_.push_back(i);
    for (size_t k = begin; k < pending_.size(); ++k) {
      if (!is_tuple_[pending_[k]]) continue;
      for (const NodeIndex user : input_.edges.users(pending_[k]))
        if (is_getitem_[user] && among[user]) pending_.push_back(user);
    }
  }
  std::swap(calls, pending_);
}

void PeakModel::collect(std::span<const NodeIndex> nodes) {
  const auto begin = static_cast<std::ptrdiff_t>(backward_.size());
  pending_.assign(nodes.begin(), nodes.end());
  while (!pending_.empty()) {
    const NodeIndex i = pending_.back();
    pending_.pop_back();
    if (i == kNoNode || placed_[i] || saved_[i] || given_[i]) continue;
    placed_[i] = 1;
    backward_.push_back(i);
    for (const NodeIndex input : input_.edges.inputs(i)) pending_.push_back(input);
  }
  if (std::ssize(backward_) - begin > 1) std::sort(backward_.begin() + begin, backward_.end());
}

void PeakModel::make_forward() {
  in_forward_ = halves_.in_forward;
  for (NodeIndex i = count_ - 1; i >= 0; --i) {
    if (saved_[i] && in_backward_[i]) in_forward_[i] = 1;
    if (!in_forward_[i] || given_[i]) continue;
    for (const NodeIndex input : input_.edges.inputs(i)) in_forward_[input] = 1;
  }
  forward_.clear();
  for (NodeIndex i = 0; i < count_; ++i)
    if (in_forward_[i] && !given_[i]) forward_.push_back(i);
  if (input_.policy.order.raises_getitems) raise_getitems(forward_, in_forward_);
}

void PeakModel::hold(NodeIndex node) {
  for (int32_t r = memory_.begin(node); r < memory_.end(node); ++r)
    if (holders_[2 * memory_.origin[r] + phase_[r]]++ == 0) held_ += memory_.bytes[r];
}

void PeakModel::release(NodeIndex node) {
  for (int32_t r = memory_.begin(node); r < memory_.end(node); ++r)
    if (--holders_[2 * memory_.origin[r] + phase_[r]] == 0) held_ -= memory_.bytes[r];
}

void PeakModel::walk(std::span<const NodeIndex> calls, char phase) {
  for (size_t at = 0; at < calls.size(); ++at)
    for (const NodeIndex input : input_.edges.inputs(calls[at]))
      if (last_use_[input] != kAlways) last_use_[input] = static_cast<int32_t>(at);
  if (phase == 1)
    for (const NodeIndex tangent : tangents_)
      if (last_use_[tangent] == kNever) release(tangent);
  for (size_t at = 0; at < calls.size(); ++at) {
    const NodeIndex i = calls[at];
    for (int32_t r = memory_.begin(i); r < memory_.end(i); ++r)
      phase_[r] = memory_.shares[r] == r ? phase : phase_[memory_.shares[r]];
    hold(i);
    peak_ = std::max(peak_, held_);
    for (const NodeIndex input : input_.edges.inputs(i))
      if (last_use_[input] == static_cast<int32_t>(at)) release(input);
    if (last_use_[i] == kNever) release(i);
  }
}

PeakModel::Answer PeakModel::ask(const std::vector<char>& saved) {
  for (NodeIndex i = 0; i < count_; ++i) saved_[i] = savable_[i] && saved[i];
  make_backward();
  make_forward();
  Answer answer;
  for (NodeIndex i = 0; i < count_; ++i) {
    again_[i] = !given_[i] && in_forward_[i] && placed_[i];
    if (!again_[i]) continue;
    answer.recompute += cost_[i];
    if (forced_[i]) answer.allowed = false;
  }

  std::fill(holders_.begin(), holders_.end(), 0);
  std::fill(phase_.begin(), phase_.end(), 0);
  std::fill(last_use_.begin(), last_use_.end(), kNever);
  held_ = peak_ = 0;
  for (const NodeIndex output : input_.graph.forward_outputs())
    if (output != kNoNode) last_use_[output] = kAlways;
  for (NodeIndex i = 0; i < count_; ++i)
    if (saved_[i] && in_backward_[i]) last_use_[i] = kAlways;
  walk(forward_, 0);

  // The caller keeps the outputs; saved values are released after their last use; recomputed values get new memory.
  for (const NodeIndex output : input_.graph.forward_outputs())
    if (output != kNoNode) hold(output);
  for (NodeIndex i = 0; i < count_; ++i) {
    if (saved_[i] && in_backward_[i]) last_use_[i] = kNever;
    if (placed_[i] || given_[i]) last_use_[i] = kNever;
  }
  for (const NodeIndex tangent : tangents_) hold(tangent);
  for (const NodeIndex output : input_.graph.backward_outputs())
    if (output != kNoNode) last_use_[output] = kAlways;
  walk(backward_, 1);
  answer.peak = peak_;
  return answer;
}

}  // namespace plumbline::partition
