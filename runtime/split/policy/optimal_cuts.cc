#include "runtime/split/policy/optimal_cuts.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "runtime/error.h"

namespace plumbline::split {
namespace {

/// Units are the ranges between neighbouring legal positions: no cut can divide one. before_[j] is the cost of the
/// first j units; every sum of a range is a difference of two of these, so that comparisons are consistent.
class Partition {
 public:
  explicit Partition(std::vector<double> before) : before_(std::move(before)) {}

  /// The unit that each part but the first begins with.
  std::vector<int> solve(int parts) {
    set_reach(parts, least_maximum(parts));
    const int units = this->units();
    std::vector<double> squares(units + 1, kUnreachable);
    squares[0] = 0;
    choice_.assign(parts + 1, std::vector<int>(units + 1, 0));
    for (int k = 1; k <= parts; ++k) {
      std::vector<double> next(units + 1, kUnreachable);
      add_part(k, k, reach_[k], k - 1, reach_[k - 1], squares, next);
      squares = std::move(next);
    }
    std::vector<int> begins(parts - 1);
    for (int k = parts, end = units; k > 1; --k) begins[k - 2] = end = choice_[k][end];
    return begins;
  }

 private:
  static constexpr double kUnreachable = std::numeric_limits<double>::infinity();

  int units() const { return static_cast<int>(before_.size()) - 1; }
  double cost(int begin, int end) const { return before_[end] - before_[begin]; }

  /// best[j]: the least maximum of the first j units in k parts. It grows with j, and the cost of a last part [i, j)
  /// falls with i, so the best i is where the two cross, which moves to the right with j.
  double least_maximum(int parts) const {
    const int units = this->units();
    std::vector<double> best(units + 1);
    for (int j = 1; j <= units; ++j) best[j] = cost(0, j);
    for (int k = 2; k <= parts; ++k) {
      std::vector<double> next(units + 1);
      int i = k - 1;
      for (int j = k; j <= units; ++j) {
        const auto with = [&](int begin) { return std::max(best[begin], cost(begin, j)); };
        while (i + 1 < j && with(i + 1) <= with(i)) ++i;
        next[j] = with(i);
      }
      best = std::move(next);
    }
    return best[units];
  }

  /// The number of units that k parts can hold when none may cost more than `maximum`.
  void set_reach(int parts, double maximum) {
    maximum_ = maximum;
    reach_.assign(1, 0);
    for (int k = 1; k <= parts; ++k) {
      int end = reach_.back();
      while (end < units() && cost(reach_.back(), end + 1) <= maximum) ++end;
      reach_.push_back(end);
    }
  }

  /// next[j] for j in [from, to]: the least sum of squares of the first j units in k parts, where the last part is
  /// known to begin in [low, high].
  void add_part(int k, int from, int to, int low, int high, const std::vector<double>& squares,
                std::vector<double>& next) {
    if (from > to) return;
    const int j = from + (to - from) / 2;
    int best = -1;
    for (int i = std::min({high, j - 1, reach_[k - 1]}); i >= std::max(low, k - 1); --i) {
      const double part = cost(i, j);
      if (part > maximum_) break;
      if (const double sum = squares[i] + part * part; sum < next[j]) {
        next[j] = sum;
        best = i;
      }
    }
    PLUMBLINE_CHECK(best >= 0, "no part " + std::to_string(k) + " ends at unit " + std::to_string(j));
    choice_[k][j] = best;
    add_part(k, from, j - 1, low, best, squares, next);
    add_part(k, j + 1, to, best, high, squares, next);
  }

  std::vector<double> before_;
  double maximum_ = 0;
  std::vector<int> reach_;
  std::vector<std::vector<int>> choice_;  // by number of parts and end: where the last part begins
};

}  // namespace

std::vector<int32_t> optimal_cuts(std::span<const double> costs, std::span<const char> legal, int stages) {
  PLUMBLINE_CHECK(legal.size() == costs.size() + 1,
                  std::to_string(legal.size()) + " positions for " + std::to_string(costs.size()) + " costs");
  double largest = 0;
  for (size_t p = 0; p < costs.size(); ++p) {
    if (!std::isfinite(costs[p]) || costs[p] < 0)
      throw InputError("split: the cost of node " + std::to_string(p) + " is " + std::to_string(costs[p]) +
                       "; costs are finite and not negative");
    largest = std::max(largest, costs[p]);
  }
  // Multiplied by a power of two, costs compare as before, and neither their sums nor the squares of these overflow.
  const int exponent = largest > 0 ? std::ilogb(largest) : 0;
  std::vector<int32_t> positions;
  std::vector<double> before = {0};
  double sum = 0;
  for (size_t p = 0; p < costs.size(); ++p) {
    if (p > 0 && legal[p]) {
      positions.push_back(static_cast<int32_t>(p));
      before.push_back(sum);
    }
    sum += std::ldexp(costs[p], -exponent);
  }
  before.push_back(sum);
  const auto possible = static_cast<int64_t>(positions.size()) + 1;
  if (stages < 1 || stages > possible)
    throw InputError("split: " + std::to_string(stages) +
                     " stages asked for, but the places where a stage may begin allow 1 to " +
                     std::to_string(possible));
  std::vector<int32_t> cuts;
  for (int unit : Partition(std::move(before)).solve(stages)) cuts.push_back(positions[unit - 1]);
  return cuts;
}

}  // namespace plumbline::split
