#include "runtime/partition/budget/peak_model.h"

#include <algorithm>
#include <utility>

#include "runtime/partition/budget/budget.h"
#include "runtime/partition/budget/memory.h"
#include "runtime/partition/joint/effects.h"
#include "runtime/partition/reorder.h"

namespace plumbline {
namespace {

constexpr int32_t kNever = -1, kAlways = INT32_MAX;

bool is_tensor(const JointNode& node) { return node.out.kind == JointResult::Kind::Tensor; }
bool is_scalar(const JointNode& node) { return node.out.kind == JointResult::Kind::Scalar; }

}  // namespace

PeakModel::PeakModel(const CutInput& input, const PartitionOptions& options)
    : input_(input), count_(static_cast<NodeIndex>(input.graph.nodes.size())) {
  find_memory();
  find_rules();
  runtime_.assign(count_, 0);
  for (NodeIndex i = 0; i < count_; ++i)
    // Views and getitems are no work.
    if (input_.graph.nodes[i].kind == JointKind::Call && source_[i] == i)
      runtime_[i] = options.runtime.empty() ? estimated_runtime(input_.graph, options, i) : options.runtime[i];
  saved_.assign(count_, 0);
  in_forward_ = in_backward_ = again_ = placed_ = phase_ = saved_;
  last_use_.assign(count_, kNever);
}

void PeakModel::find_memory() {
  const JointGraph& graph = input_.graph;
  storage_bytes_ = graph.storage_bytes;
  const std::vector<char> free = storages_held_anyway(graph);
  for (size_t s = 0; s < free.size(); ++s)
    if (free[s]) storage_bytes_[s] = 0;
  const auto storage_of = [&](const JointResult& result, bool costs) {
    if (result.storage >= 0) return result.storage;
    storage_bytes_.push_back(costs ? result.bytes : 0);
    return static_cast<int32_t>(storage_bytes_.size()) - 1;
  };
  storage_begin_.reserve(count_ + 1);
  source_.resize(count_);
  base_.resize(count_);
  for (NodeIndex i = 0; i < count_; ++i) {
    const JointNode& node = graph.nodes[i];
    storage_begin_.push_back(static_cast<int32_t>(storage_.size()));
    const bool costs = node.kind == JointKind::Tangent || (!node.is_input() && node.kind != JointKind::GetAttr);
    source_[i] = base_[i] = i;
    if (node.kind == JointKind::GetItem && is_tensor(node)) {
      const NodeIndex tuple = input_.edges.inputs(i)[0];
      storage_.push_back(storages(tuple)[node.args[1].integer]);
      source_[i] = tuple;
      if (base_[tuple] != tuple && storages(base_[tuple])[0] == storage_.back()) base_[i] = base_[tuple];
    } else if (is_tensor(node)) {
      storage_.push_back(storage_of(node.out, costs));
      int tensors = 0;
      for (const NodeIndex viewed : input_.edges.inputs(i)) {
        if (!is_scalar(graph.nodes[viewed])) ++tensors;
        if (source_[i] == i && is_tensor(graph.nodes[viewed]) && storages(viewed)[0] == storage_.back())
          source_[i] = viewed;
      }
      if (source_[i] != i && tensors == 1) base_[i] = base_[source_[i]];
    } else if (node.out.kind == JointResult::Kind::Tuple) {
      for (const JointResult& item : node.out.items)
        if (item.kind == JointResult::Kind::Tensor)
          storage_.push_back(storage_of(item, costs));
        else
          storage_.push_back(storage_of({}, false));
      // A tuple of views, as of split.
      const auto inputs = input_.edges.inputs(i);
      if (inputs.size() == 1 && !node.out.items.empty() && is_tensor(graph.nodes[inputs[0]]) &&
          storage_.back() == storages(inputs[0])[0]) {
        source_[i] = inputs[0];
        base_[i] = base_[inputs[0]];
      }
    }
  }
  storage_begin_.push_back(static_cast<int32_t>(storage_.size()));
  holders_.assign(2 * storage_bytes_.size(), 0);
}

void PeakModel::find_rules() {
  const JointGraph& graph = input_.graph;
  given_.assign(count_, 0);
  savable_ = forced_ = stays_ = drawn_ = in_place_ = given_;
  std::vector<char> lost(storage_bytes_.size(), 0);
  reads_tangent_ = is_getitem_ = is_tuple_ = given_;
  // What runs in the forward whatever is saved: what its outputs need, and its random draws with what they need.
  std::vector<char> made = input_.classes.required_forward;
  for (NodeIndex i = count_ - 1; i >= 0; --i) {
    drawn_[i] = draws_in_forward(graph.nodes[i]) && !input_.classes.tangents_closure[i];
    made[i] |= drawn_[i];
    if (!made[i]) continue;
    for (const NodeIndex input : input_.edges.inputs(i)) made[input] = 1;
  }
  for (NodeIndex i = 0; i < count_; ++i) {
    const JointNode& node = graph.nodes[i];
    const auto inputs = input_.edges.inputs(i);
    if (node.kind == JointKind::Primal && node.epilogue_mutation && input_.policy.epilogue_mutation_infinite &&
        is_tensor(node))
      lost[storages(i)[0]] = 1;
    given_[i] = node.is_input() || node.kind == JointKind::GetAttr;
    stays_[i] = has_effects(node);
    in_place_[i] = keeps_its_place(node);
    is_getitem_[i] = node.kind == JointKind::GetItem;
    is_tuple_[i] = node.out.kind == JointResult::Kind::Tuple;
    if (node.kind == JointKind::Tangent) tangents_.push_back(i);
    for (const NodeIndex input : inputs)
      if (graph.nodes[input].kind == JointKind::Tangent) reads_tangent_[i] = 1;
    // What only the backward uses is its own work, except for further results of calls that the forward makes.
    const bool made_by_forward = made[i] || (is_getitem_[i] && made[inputs[0]]);
    if (given_[i] || !made_by_forward || input_.classes.tangents_closure[i]) continue;
    savable_[i] = (is_tensor(node) || is_scalar(node)) && !must_recompute(node);
    forced_[i] = node.recompute == CheckpointPolicy::MustSave || must_be_in_forward(node);
    for (const NodeIndex input : inputs) {
      if (node.kind == JointKind::GetItem && forced_[input]) forced_[i] = 1;
      if (source_[i] == i && is_tensor(graph.nodes[input]) && lost[storages(input)[0]]) forced_[i] = 1;
    }
  }
}

int64_t PeakModel::bytes(NodeIndex node) const {
  int64_t sum = 0;
  for (const int32_t storage : storages(node)) sum += storage_bytes_[storage];
  return sum;
}

int64_t PeakModel::floor() const {
  const JointGraph& graph = input_.graph;
  // A reversed walk finds the calls that the backward's outputs need and the forward cannot make, and the forward's.
  std::vector<char> runs(count_, 0);
  for (const NodeIndex output : graph.outputs)
    if (output != kNoNode) runs[output] = 1;
  for (NodeIndex i = count_ - 1; i >= 0; --i)
    if (runs[i] && (input_.classes.required_forward[i] || input_.classes.tangents_closure[i]))
      for (const NodeIndex input : input_.edges.inputs(i)) runs[input] = 1;
  std::vector<NodeIndex> counted_for(storage_bytes_.size(), kNoNode);
  int64_t most = 0;
  for (NodeIndex i = 0; i < count_; ++i) {
    if (!runs[i] || given_[i]) continue;
    int64_t bytes = 0;
    const auto count = [&](NodeIndex value) {
      for (const int32_t storage : storages(value))
        if (std::exchange(counted_for[storage], i) != i) bytes += storage_bytes_[storage];
    };
    count(i);
    for (const NodeIndex input : input_.edges.inputs(i)) count(input);
    if (input_.classes.tangents_closure[i])
      for (const NodeIndex output : graph.forward_outputs())
        if (output != kNoNode) count(output);
    most = std::max(most, bytes);
  }
  return most;
}

void PeakModel::make_backward() {
  std::fill(in_backward_.begin(), in_backward_.end(), 0);
  for (const NodeIndex output : input_.graph.backward_outputs())
    if (output != kNoNode) in_backward_[output] = 1;
  for (NodeIndex i = count_ - 1; i >= 0; --i) {
    if (stays_[i] && input_.classes.tangents_closure[i]) in_backward_[i] = 1;
    if (!in_backward_[i] || saved_[i] || given_[i]) continue;
    for (const NodeIndex input : input_.edges.inputs(i)) in_backward_[input] = 1;
  }
  // In autograd's order: the calls from the first that reads a tangent on, each after what it needs; before them those
  // that keep their place.
  std::fill(placed_.begin(), placed_.end(), 0);
  backward_.clear();
  NodeIndex first = 0;
  while (first < count_ && !(in_backward_[first] && reads_tangent_[first])) ++first;
  if (first == count_) first = 0;
  NodeIndex waiting = 0;
  for (NodeIndex i = 0; i < count_; ++i) {
    if (!in_backward_[i] || (i < first && !in_place_[i])) continue;
    if (in_place_[i] && input_.graph.nodes[i].writes)
      for (; waiting < i; ++waiting)
        if (in_backward_[waiting]) collect(waiting);
    collect(i);
  }
  for (const NodeIndex output : input_.graph.backward_outputs())
    if (output != kNoNode) collect(output);
  raise_getitems();
}

/// Every getitem goes right after its call.
void PeakModel::raise_getitems() {
  pending_.clear();
  for (const NodeIndex i : backward_) {
    if (is_getitem_[i]) continue;
    pending_.push_back(i);
    if (!is_tuple_[i]) continue;
    for (const NodeIndex user : input_.edges.users(i))
      if (is_getitem_[user] && placed_[user]) pending_.push_back(user);
  }
  std::swap(backward_, pending_);
}

void PeakModel::collect(NodeIndex node) {
  const auto begin = static_cast<std::ptrdiff_t>(backward_.size());
  pending_.assign(1, node);
  while (!pending_.empty()) {
    const NodeIndex i = pending_.back();
    pending_.pop_back();
    if (placed_[i] || saved_[i] || given_[i]) continue;
    placed_[i] = 1;
    backward_.push_back(i);
    for (const NodeIndex input : input_.edges.inputs(i)) pending_.push_back(input);
  }
  if (std::ssize(backward_) - begin > 1) std::sort(backward_.begin() + begin, backward_.end());
}

void PeakModel::make_forward() {
  std::fill(in_forward_.begin(), in_forward_.end(), 0);
  for (const NodeIndex output : input_.graph.forward_outputs())
    if (output != kNoNode) in_forward_[output] = 1;
  for (NodeIndex i = count_ - 1; i >= 0; --i) {
    if ((saved_[i] && in_backward_[i]) || (stays_[i] && input_.classes.required_forward[i]) || drawn_[i])
      in_forward_[i] = 1;
    if (!in_forward_[i] || given_[i]) continue;
    for (const NodeIndex input : input_.edges.inputs(i)) in_forward_[input] = 1;
  }
  forward_.clear();
  for (NodeIndex i = 0; i < count_; ++i)
    if (in_forward_[i] && !given_[i]) forward_.push_back(i);
}

void PeakModel::hold(NodeIndex node) {
  for (const int32_t storage : storages(node))
    if (holders_[2 * storage + phase_[node]]++ == 0) held_ += storage_bytes_[storage];
}

void PeakModel::release(NodeIndex node) {
  for (const int32_t storage : storages(node))
    if (--holders_[2 * storage + phase_[node]] == 0) held_ -= storage_bytes_[storage];
}

void PeakModel::walk(std::span<const NodeIndex> calls, int phase) {
  for (size_t at = 0; at < calls.size(); ++at)
    for (const NodeIndex input : input_.edges.inputs(calls[at]))
      if (last_use_[input] != kAlways) last_use_[input] = static_cast<int32_t>(at);
  if (phase == 1)
    for (const NodeIndex tangent : tangents_)
      if (last_use_[tangent] == kNever) release(tangent);
  for (size_t at = 0; at < calls.size(); ++at) {
    const NodeIndex i = calls[at];
    phase_[i] = static_cast<char>(source_[i] == i ? phase : phase_[source_[i]]);
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
    answer.recompute += runtime_[i];
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

  // The caller keeps the outputs; what is saved goes with its last use, what runs again is made anew.
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

}  // namespace plumbline
