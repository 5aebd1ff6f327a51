// How much memory a choice of saved values takes, and how much it computes again, without making its graphs: one joint
// graph on flat arrays, asked for many choices. What it says of a choice is what simulate_memory() says of the
// partition made for it (in autograd's order); an answer costs a few walks over the graph.
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
  /// `input` must outlive it.
  explicit PeakModel(const CutInput& input);

  struct Answer {
    int64_t peak = 0;      ///< bytes
    double recompute = 0;  ///< recomputation_cost() of the calls that run again
    bool allowed = true;   ///< nothing runs again that may not
  };
  /// `saved`: by node. What need not be saved is left out by itself, so too much may be asked for.
  Answer ask(const std::vector<char>& saved);
  /// By node, of the last answer: it runs in both halves.
  const std::vector<char>& recomputed() const { return again_; }

  /// Bytes that no choice gets below: what the largest call that must run reads and makes, and in the backward the
  /// forward's outputs beside it.
  int64_t floor() const;

  /// By node: it may be saved. The forward makes it, or, if only the backward uses it, the model's forward made it.
  const std::vector<char>& savable() const { return savable_; }
  /// By node: savable, and the forward makes it for its own sake.
  bool made_by_forward(NodeIndex node) const { return made_[node]; }
  /// By node: must not run again: runs_once() of halves.h, or made of an input that is overwritten.
  const std::vector<char>& forced() const { return forced_; }
  /// By node: the tensor that it is a view of, through views that read nothing else; itself where it is none.
  const std::vector<NodeIndex>& base() const { return base_; }
  /// By node: bytes that it costs to save it as the only value of its storage.
  int64_t bytes(NodeIndex node) const;
  /// recomputation_cost(); 0 of views and getitems.
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

  /// What the node gives that is a tensor or scalar lies in the memory of an input.
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

  // Of one answer.
  std::vector<char> saved_, in_forward_, in_backward_, again_, placed_;
  std::vector<NodeIndex> forward_, backward_, pending_;
  std::vector<int32_t> last_use_;
  std::vector<char> phase_;       ///< by result: the half whose memory it lies in, of its latest making
  std::vector<int32_t> holders_;  ///< by result that brings memory and phase: results that keep it
  int64_t held_ = 0, peak_ = 0;
};

}  // namespace plumbline::partition
