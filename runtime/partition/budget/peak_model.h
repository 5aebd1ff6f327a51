// Predicts the peak memory and the recomputation of a choice of saved values without building its graphs: one joint
// graph in flat arrays, evaluated for many choices. The prediction equals what simulate_memory() reports for the
// partition of that choice (in autograd's order); each costs a few walks over the graph.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/partition/budget/result_memory.h"
#include "runtime/partition/cut/halves.h"
#include "runtime/partition/cut/min_cut.h"
#include "runtime/partition/partition.h"

namespace plumbline::partition {

class PeakModel {
 public:
  /// `input` must outlive the model.
  explicit PeakModel(const CutInput& input);

  struct Answer {
    int64_t peak = 0;      ///< bytes
    double recompute = 0;  ///< recomputation_cost() of the calls that run again
    bool allowed = true;   ///< no call is recomputed that must run once
  };
  /// `saved`: by node. Unneeded values are dropped, so `saved` may contain too much.
  Answer ask(const std::vector<char>& saved);
  /// By node, for the last answer: whether it runs in both halves.
  const std::vector<char>& recomputed() const { return again_; }

  /// A lower bound in bytes for every choice: the inputs and results of the largest call that must run, plus the
  /// forward's outputs if that call is in the backward.
  int64_t floor() const;

  /// By node: whether it may be saved: the forward makes it, or, if only the backward uses it, the model's forward made
  /// it.
  const std::vector<char>& savable() const { return savable_; }
  /// Whether the node is savable and the forward makes it even if the backward does not use it.
  bool made_by_forward(NodeIndex node) const { return made_[node]; }
  /// By node: whether it must not be recomputed: runs_once() of halves.h, or made of an input that is overwritten.
  const std::vector<char>& forced() const { return forced_; }
  /// By node: the tensor that it views, through views with no other input; the node itself if it is no such view.
  const std::vector<NodeIndex>& base() const { return base_; }
  /// The bytes that saving the node costs if no other value of its storage is saved.
  int64_t bytes(NodeIndex node) const;
  /// recomputation_cost(); 0 for views and getitems.
  double cost(NodeIndex node) const { return cost_[node]; }
  const CutInput& input() const { return input_; }

 private:
  void find_bases();
  void find_rules();
  void make_forward();
  void make_backward();
  void collect(std::span<const NodeIndex> nodes);
  void raise_getitems(std::vector<NodeIndex>& calls, const std::vector<char>& among);
  void walk(std::span<const NodeIndex> calls, char phase);
  void hold(NodeIndex node);
  void release(NodeIndex node);

  /// All tensor and scalar results of the node lie in the memory of an input.
  bool is_view(NodeIndex node) const { return !memory_.makes_memory(node); }

  const CutInput& input_;
  const NodeIndex count_;
  const Halves halves_;
  const ResultMemory memory_;
  std::vector<NodeIndex> base_;
  // Rules.
  std::vector<char> given_, made_, savable_, forced_, reads_tangent_, is_getitem_, is_tuple_;
  std::vector<NodeIndex> tangents_;
  std::vector<double> cost_;

  // State of one answer.
  std::vector<char> saved_, in_forward_, in_backward_, again_, placed_;
  std::vector<NodeIndex> forward_, backward_, pending_;
  std::vector<int32_t> last_use_;
  std::vector<char> phase_;       ///< by result: the half in which its memory was last made
  std::vector<int32_t> holders_;  ///< by result that makes memory, and phase: the number of results that keep it alive
  int64_t held_ = 0, peak_ = 0;
};

}  // namespace plumbline::partition
