// Chooses the saved values so that peak memory, not the saved bytes, stays within a budget. Saved bytes are a poor
// predictor of the peak: with nothing saved, everything is recomputed at once. So plans are made in several ways, and
// each is judged by the peak of its run (peak_model.h):
//   * everything saved, as in eager mode, and nothing saved;
//   * checkpoints between segments of the forward (segments.h), for many segment sizes;
//   * on graphs small enough for more cuts: the cuts of the policy, of mode bytes and of some budgets by saved bytes;
//   * each plan that leaves room, filled up with the values that cost the most recomputation per byte.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/partition/cut/min_cut.h"
#include "runtime/partition/partition.h"

namespace plumbline::partition {

struct PeakPlan {
  std::vector<NodeIndex> saved;  ///< ascending; includes the inputs of the forward
  int64_t floor = 0;             ///< bytes: what the largest call alone takes; no plan is below it
  int64_t least = 0;             ///< bytes: the lowest peak of all plans tried
  int64_t most = 0;              ///< bytes: the peak without recomputation, as in the default mode
  int64_t limit = 0;             ///< bytes: floor + budget * (most - floor), or `least` if that is more
  int64_t peak = 0;              ///< bytes: of this plan; at most `limit`
  double recompute = 0;          ///< recomputation_cost() of its recomputed calls
};

/// Among the plans tried whose peak is within options.budget, the one that recomputes least. The budget is a fraction
/// of the range from the lower bound to the peak of saving everything. A budget that no plan meets, such as 0, yields
/// the plan with the lowest peak. The number of plans tried depends only on the size of the graph, never on a clock, so
/// every rank finds the same plan. Throws InputError as min_cut() does.
PeakPlan plan_by_peak(const CutInput& input, const PartitionOptions& options);

/// The saved values of that plan, for partition(); adds a record to `cuts`.
std::vector<NodeIndex> saved_within_peak(const CutInput& input, const PartitionOptions& options,
                                         std::vector<CutRecord>& cuts);

}  // namespace plumbline::partition
