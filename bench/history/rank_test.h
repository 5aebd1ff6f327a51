// The rank test of Mann and Whitney (Annals of Mathematical Statistics 18, 1947): whether one of two sets of samples
// tends to larger values than the other, without an assumption about their distribution. And what it says about the
// factor between them: the estimate of Hodges and Lehmann (1963) with the interval that inverts the test.
#pragma once

#include <span>

namespace plumbline::bench {

/// The probability that sets of samples of the same distribution differ at least as much in rank as `a` and `b`, which
/// must not be empty. Equal samples share their mean rank. Exact for up to 40 samples together (all ways to divide them
/// into sets of these sizes are counted, ties included); above, the normal approximation with corrections for
/// continuity and ties.
double rank_test(std::span<const double> a, std::span<const double> b);

/// The largest U for which the two-sided test of `m` and `n` samples without ties rejects at `significance`; -1 if none
/// does, because the samples are too few. Exact for m + n up to 40, else the normal approximation.
int critical_u(int m, int n, double significance);

/// By which factor the values of `b` are larger than those of `a`.
struct RatioInterval {
  double ratio = 1;          ///< the median of all b/a
  double low = 0, high = 0;  ///< confidence interval of the factor; 0 and infinite with too few samples
};

/// All samples must be positive. Of more than 1000, as many are chosen evenly by rank: the number of pairs is bounded,
/// and the interval is that of fewer samples, a wider one.
RatioInterval ratio_interval(std::span<const double> a, std::span<const double> b, double significance);

}  // namespace plumbline::bench
