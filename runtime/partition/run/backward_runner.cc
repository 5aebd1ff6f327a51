#include "runtime/partition/run/backward_runner.h"

#include <algorithm>
#include <iterator>
#include <set>

#include "runtime/error.h"
#include "runtime/partition/run/lower.h"
#include "runtime/partition/run/missing_tangents.h"
#include "runtime/partition/run/split_backward_graph.h"

namespace plumbline::partition {
namespace {

using Mode = graph::RandomStates::Mode;

/// What a runner is made from, for as long as it is made: the partition, or one that was rewritten.
class WithoutTangents {
 public:
  WithoutTangents(const Partition& partition, const std::vector<char>& missing) : given_(partition) {
    if (std::find(missing.begin(), missing.end(), 1) == missing.end()) return;
    rewritten_.emplace();
    rewritten_->graph = partition.graph;
    rewritten_->saved = partition.saved;
    rewritten_->replayed = partition.replayed;
    rewritten_->backward.inputs = partition.backward.inputs;
    drop_tangents(rewritten_->graph, missing);
    const std::span<const NodeIndex> outputs = rewritten_->graph.backward_outputs();
    rewritten_->backward.outputs.assign(outputs.begin(), outputs.end());
    rewritten_->backward.ops = live_ops(rewritten_->graph, partition.backward.ops, rewritten_->backward.outputs);
  }
  const Partition& operator*() const { return rewritten_ ? *rewritten_ : given_; }
  const Partition* operator->() const { return &**this; }

 private:
  const Partition& given_;
  std::optional<Partition> rewritten_;
};

/// By primal: gradients that would hand out memory which belongs to somebody else: a saved value's, or that of another
/// gradient. (Autograd keeps what it is given, and adds to it in place.) The same tensor twice autograd notices itself.
std::vector<char> borrowed_gradients(const Partition& partition) {
  const std::set<NodeIndex> saved(partition.saved.begin(), partition.saved.end());
  std::map<int32_t, NodeIndex> owner;
  for (const NodeIndex node : partition.saved) owner.emplace(partition.graph.nodes[node].out.storage, node);
  std::vector<char> result;
  for (const NodeIndex gradient : partition.backward.outputs) {
    result.push_back(0);
    if (gradient == kNoNode) continue;
    const int32_t storage = partition.graph.nodes[gradient].out.storage;
    result.back() =
        saved.contains(gradient) || (storage >= 0 && owner.emplace(storage, gradient).first->second != gradient);
  }
  return result;
}

}  // namespace

BackwardRunner::BackwardRunner(const Partition& partition, const std::vector<char>& missing,
                               const std::map<std::string, at::Tensor>& constants)
    : partition_(partition), missing_(missing), constants_(constants), taken_(partition.graph.nodes.size(), 0) {
  const WithoutTangents rewritten(partition_, missing_);
  borrowed_ = borrowed_gradients(*rewritten);
  for (const NodeIndex op : rewritten->backward.ops)
    for_each_input(rewritten->graph.nodes[op], [&](NodeIndex input) { taken_[input] = 1; });
}

graph::Program BackwardRunner::program_of(const Partition& partition, const Subgraph& part) const {
  return lower(partition.graph, part, constants_, partition.replayed);
}

const graph::Program& BackwardRunner::whole() {
  const std::lock_guard<std::mutex> lock(programs_);
  if (!whole_) {
    const WithoutTangents rewritten(partition_, missing_);
    whole_ = program_of(*rewritten, rewritten->backward);
  }
  return *whole_;
}

void BackwardRunner::run(std::vector<at::Tensor> inputs, std::vector<at::Tensor>& gradients,
                         std::vector<at::Tensor>& states) {
  run_lowered(whole(), std::move(inputs), gradients, {Mode::Replay, &states});
  own_memory(gradients);
}

const BackwardRunner::Halves& BackwardRunner::halves_of(const std::vector<char>& wanted) {
  const std::lock_guard<std::mutex> lock(programs_);
  const auto known = halves_.find(wanted);
  if (known != halves_.end()) return known->second;
  const WithoutTangents rewritten(partition_, missing_);
  const SplitBackward split = split_backward_graph(*rewritten, wanted);
  return halves_
      .emplace(wanted, Halves{program_of(*rewritten, split.input_half), program_of(*rewritten, split.weight_half),
                              split.carried.size()})
      .first->second;
}

void BackwardRunner::run_first(const std::vector<char>& wanted, std::vector<at::Tensor> inputs,
                               std::vector<at::Tensor>& gradients, std::vector<at::Tensor>& carried,
                               std::vector<at::Tensor>& states) {
  const Halves& halves = halves_of(wanted);
  std::vector<at::Tensor> made;
  run_lowered(halves.input, std::move(inputs), made, {Mode::Replay, &states});
  const auto end = made.end() - static_cast<ptrdiff_t>(halves.carried);
  carried.assign(std::make_move_iterator(end), std::make_move_iterator(made.end()));
  made.erase(end, made.end());
  scatter(wanted, 1, made, gradients);
}

void BackwardRunner::run_second(const std::vector<char>& wanted, std::vector<at::Tensor> carried,
                                std::vector<at::Tensor>& gradients, std::vector<at::Tensor>& states) {
  std::vector<at::Tensor> made;
  run_lowered(halves_of(wanted).weight, std::move(carried), made, {Mode::Replay, &states});
  scatter(wanted, 0, made, gradients);
}

/// Puts the gradients of one half in their places: those of the primals for which `wanted` is `half`, in order.
void BackwardRunner::scatter(const std::vector<char>& wanted, char half, std::vector<at::Tensor>& made,
                             std::vector<at::Tensor>& gradients) const {
  gradients.assign(wanted.size(), at::Tensor());
  size_t next = 0;
  for (size_t p = 0; p < wanted.size(); ++p)
    if (wanted[p] == half) gradients[p] = std::move(made.at(next++));
  PLUMBLINE_CHECK(next == made.size(), "a half of a backward made other gradients than it was asked for");
  own_memory(gradients);
}

void BackwardRunner::own_memory(std::vector<at::Tensor>& gradients) const {
  for (size_t p = 0; p < gradients.size(); ++p)
    if (borrowed_[p] && gradients[p].defined()) gradients[p] = gradients[p].clone();
}

}  // namespace plumbline::partition
