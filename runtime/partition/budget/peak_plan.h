// Chooses the saved values so that peak memory, not the saved bytes, stays within a budget. Saved bytes are a poor
// predictor of the peak: with nothing saved, everything is recomputed at once. The planner tries several choices and
// predicts the peak of each (peak_model.h):
//   * everything saved, as in eager mode, and nothing saved;
//   * checkpoints between segments of the forward (segments.h), for many segment sizes;
//   * on graphs of at most 5000 nodes: the cuts of the policy, of mode bytes and of some budgets by saved bytes;
//   * up to three plans with the lowest peaks, with more values saved, those of the most recomputation per byte first.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/partition/cut/min_cut.h"
#include "runtime/partition/partition.h"

namespace plumbline::partition {

struct PeakPlan {
  std::vector<NodeIndex> saved;  ///< ascending; includes the inputs of the forward
  int64_t floor = 0;             ///< bytes: PeakModel::floor(), a lower bound of every peak
  int64_t least = 0;             ///< bytes: the lowest peak of the plans of the first three kinds above
  int64_t most = 0;              ///< bytes: the peak with everything saved, as in the default mode
  int64_t limit = 0;             ///< bytes: floor + budget * (most - floor), but at least `least`
  int64_t peak = 0;              ///< bytes: the peak of this plan; at most `limit`
  double recompute = 0;          ///< sum of recomputation_cost() over the recomputed calls
};

/// Returns the plan that recomputes least among those tried whose peak is at most PeakPlan::limit. options.budget (0 to
/// 1, not checked) is a fraction of the range from `floor` to `most`; if no plan meets it, `limit` is the lowest peak.
/// The search depends only on the graph, never on a clock, so every rank finds the same plan. Throws InputError, as
/// min_bytes_cut() does, if even the plan that saves everything recomputes a call that must run once.
PeakPlan plan_by_peak(const CutInput& input, const PartitionOptions& options);

/// Returns PeakPlan::saved of plan_by_peak(), for partition(), and appends one record to `cuts`.
std::vector<NodeIndex> saved_within_peak(const CutInput& input, const PartitionOptions& options,
                                         std::vector<CutRecord>& cuts);

}  // namespace plumbline::partition
