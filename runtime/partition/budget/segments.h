// Checkpoints between segments of the forward: keeps the values that cross a few places, so that everything between two
// places can be computed from the earlier one. After T. Chen, B. Xu, C. Zhang and C. Guestrin, "Training deep nets with
// sublinear memory cost" (2016), for graphs instead of chains: the chosen places are those that few bytes cross.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/partition/budget/peak_model.h"

namespace plumbline::partition {

/// The forward as a line of places, one after each call.
class ForwardLine {
 public:
  explicit ForwardLine(const PeakModel& model);

  /// Bytes that a backward without recomputation would keep.
  int64_t kept_bytes() const { return kept_.empty() ? 0 : kept_.back(); }

  /// By node: whether it is saved, for a division in which each segment holds at most `limit` of those bytes (or one
  /// call); of all such divisions, one in which the fewest bytes cross the places. O(calls).
  std::vector<char> checkpoints(int64_t limit) const;

 private:
  /// A storage, and the part of the line on which calls of the forward still need it.
  struct Life {
    NodeIndex node;  ///< to be saved
    int32_t begin, end;
  };
  std::vector<Life> lives_;
  std::vector<int64_t> crossing_;  ///< by place: bytes; kBlocked between a call and its getitems
  std::vector<int64_t> kept_;      ///< by place: bytes made up to it that the backward reads
  NodeIndex nodes_ = 0;
};

}  // namespace plumbline::partition
