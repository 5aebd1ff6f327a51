// Checkpoints between segments of the forward: saves the values that cross a few places in the order of calls, so that
// each segment can be recomputed from the values saved at its beginning. After T. Chen, B. Xu, C. Zhang and C.
// Guestrin, "Training deep nets with sublinear memory cost" (2016), for graphs instead of chains: the chosen places are
// those that few bytes cross.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/partition/budget/peak_model.h"

namespace plumbline::partition {

/// The forward as a line of places: place p follows the p-th call, and place 0 precedes the first.
class ForwardLine {
 public:
  /// `model` need not outlive the line.
  explicit ForwardLine(const PeakModel& model);

  /// Returns the bytes of the forward's values that the backward reads: those that it would keep without recomputation.
  int64_t kept_bytes() const { return kept_.empty() ? 0 : kept_.back(); }

  /// Divides the line into segments that each hold at most `limit` of the kept bytes (or a single call, with its
  /// getitems), such that the fewest bytes cross the places between them. Returns, indexed by NodeIndex, whether the
  /// node crosses a place and is therefore saved. O(calls).
  std::vector<char> checkpoints(int64_t limit) const;

 private:
  /// A value, and the part of the line on which calls of the forward still need it or a view of it.
  struct Life {
    NodeIndex node;      ///< the base of its views
    int32_t begin, end;  ///< places: after the node, and after the last call that reads the value
  };
  std::vector<Life> lives_;
  std::vector<int64_t> crossing_;  ///< by place: bytes; kBlocked between a call and its getitems
  std::vector<int64_t> kept_;      ///< by place: bytes that calls before it made and the backward reads
  NodeIndex nodes_ = 0;
};

}  // namespace plumbline::partition
