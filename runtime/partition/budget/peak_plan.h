// Which values to save so that the peak of memory, not the saved bytes, stays within a budget. The bytes that are saved
// say little about the peak: with nothing saved, everything is computed again at once. So plans are made in several
// ways, and each is judged by the peak that its run would have (peak_model.h):
//   * everything saved, as eager mode keeps it, and nothing;
//   * checkpoints between segments of the forward (segments.h), of many sizes;
//   * on graphs small enough for more cuts, those of the policy, of mode bytes and of some budgets by saved bytes;
//   * each of them that leaves room, filled up with the values that take the longest to compute again for their bytes.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/partition/cut/min_cut.h"
#include "runtime/partition/partition.h"

namespace plumbline::partition {

struct PeakPlan {
  std::vector<NodeIndex> saved;  ///< ascending; inputs of the forward are among them
  int64_t floor = 0;             ///< bytes: what the largest call alone takes; no plan gets below it
  int64_t least = 0;             ///< bytes: the lowest peak of all plans that were tried
  int64_t most = 0;              ///< bytes: the peak when nothing is computed again, as in the default mode
  int64_t limit = 0;             ///< bytes: floor + budget * (most - floor), or `least` where that is more
  int64_t peak = 0;              ///< bytes: of this plan; at most `limit`
  double recompute = 0;          ///< recomputation_cost() of what it computes again
};

/// The plan that computes the least again of those tried whose peak is within options.budget: a share of the way from
/// what no plan can get below to the peak of saving everything. A budget that no plan meets, as 0, gives the plan of
/// the lowest peak. How many are tried depends on the size of the graph alone, never on a clock, so that every rank
/// finds the same. Throws InputError as min_cut() does.
PeakPlan plan_by_peak(const CutInput& input, const PartitionOptions& options);

/// Its saved values, for partition(); adds a record to `cuts`.
std::vector<NodeIndex> saved_within_peak(const CutInput& input, const PartitionOptions& options,
                                         std::vector<CutRecord>& cuts);

}  // namespace plumbline::partition
