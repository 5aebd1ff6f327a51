// Predicts the peak memory and the recomputation of a choice of saved values without building the two graphs: one joint
// graph in flat arrays is evaluated for many choices. The predicted peak equals that of simulate_memory() for the
// partition of that choice in autograd's order (Reordering::KeepsEffects), without overwriting. One prediction takes a
// few walks over the graph.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/partition/budget/result_memory.h"
#include "runtime/partition/cut/halves.h"
#include "runtime/partition/cut/min_cut.h"
#include "runtime/partition/partition.h"

namespace plumbline::partition {

/// Not thread-safe: ask() changes the model. Vectors of flags are indexed by NodeIndex.
class PeakModel {
 public:
  /// `input` must outlive the model.
  explicit PeakModel(const CutInput& input);

  struct Answer {
    int64_t peak = 0;      ///< bytes
    double recompute = 0;  ///< sum of cost() over the calls that run in both halves
    bool allowed = true;   ///< false if a forced() call is recomputed
  };
  /// Returns the prediction for a choice. Nodes in `saved` that are not savable() or that the backward does not need
  /// are ignored.
  Answer ask(const std::vector<char>& saved);
  /// For the last call of ask(): whether the node runs in both halves.
  const std::vector<char>& recomputed() const { return again_; }

  /// Returns a lower bound in bytes of the peak of every choice: the largest call that must run, with its inputs and
  /// results, and with the forward's outputs if the backward runs the call.
  int64_t floor() const;

  /// Whether the node may be saved: its result is a tensor or a scalar, no tag asks to recompute the node or the memory
  /// that it lies in, and the forward makes the node or, if only the backward uses it, the model ran it in its forward.
  const std::vector<char>& savable() const { return savable_; }
  /// Whether the forward runs the node even if the backward does not use it. Such a node need not be savable().
  bool made_by_forward(NodeIndex node) const { return made_[node]; }
  /// Whether the node must not be recomputed: runs_once() of halves.h, a call that reads an input that is overwritten
  /// before the backward, or a getitem of such a node.
  const std::vector<char>& forced() const { return forced_; }
  /// Indexed by NodeIndex: the tensor that the node views, through views with one tensor input; the node itself if it
  /// is no such view.
  const std::vector<NodeIndex>& base() const { return base_; }
  /// Returns the bytes that saving the node costs if no other value of its storage is saved; 0 if an input or a
  /// constant holds the storage.
  int64_t bytes(NodeIndex node) const;
  /// Returns recomputation_cost(); 0 for inputs, constants, views and getitems.
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

  /// Whether all results of the node lie in the memory of its inputs.
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
