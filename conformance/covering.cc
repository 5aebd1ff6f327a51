#include "conformance/covering.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "runtime/error.h"

namespace plumbline {
namespace {

/// Calls `visit` with each row whose first values are those of `row`.
void each_completion(const std::vector<int>& sizes, CoveringRow& row, const std::function<void()>& visit) {
  if (row.size() == sizes.size()) return visit();
  row.push_back(0);
  for (; row.back() < sizes[row.size() - 1]; ++row.back()) each_completion(sizes, row, visit);
  row.pop_back();
}

using Value = std::pair<int, int>;  ///< factor, value
using Pair = std::pair<Value, Value>;

std::vector<Pair> pairs_of(const CoveringRow& row) {
  std::vector<Pair> pairs;
  for (int a = 0; a < static_cast<int>(row.size()); ++a)
    for (int b = a + 1; b < static_cast<int>(row.size()); ++b) pairs.push_back({{a, row[a]}, {b, row[b]}});
  return pairs;
}

class Covering {
 public:
  Covering(std::vector<int> sizes, const std::function<bool(const CoveringRow&)>& possible)
      : sizes_(std::move(sizes)), possible_(possible) {}

  std::vector<CoveringRow> build() {
    CoveringRow row;
    each_completion(sizes_, row, [&] {
      if (possible_(row))
        for (const Pair& pair : pairs_of(row)) missing_.insert(pair);
    });
    for (int a = 0; a < sizes_[0]; ++a)
      for (int b = 0; b < sizes_[1]; ++b) add_best({a, b}, {{0, a}, {1, b}});
    while (!missing_.empty()) add_best({}, *missing_.begin());
    std::sort(rows_.begin(), rows_.end());
    return rows_;
  }

 private:
  /// Of the possible rows that begin with `row` and hold `pair`, the one with most pairs that are missing; of several
  /// the one whose values after the second came together least often.
  void add_best(CoveringRow row, const Pair& pair) {
    CoveringRow best;
    std::pair<int, int> most;
    each_completion(sizes_, row, [&] {
      if (row[pair.first.first] != pair.first.second || row[pair.second.first] != pair.second.second) return;
      if (!possible_(row)) return;
      int news = 0;
      for (const Pair& p : pairs_of(row)) news += missing_.contains(p);
      const std::pair<int, int> worth = {news, -used_[rest_of(row)]};
      if (best.empty() || worth > most) best = row, most = worth;
    });
    if (best.empty()) return;
    for (const Pair& p : pairs_of(best)) missing_.erase(p);
    ++used_[rest_of(best)];
    rows_.push_back(best);
  }

  static CoveringRow rest_of(const CoveringRow& row) { return {row.begin() + 2, row.end()}; }

  std::vector<int> sizes_;
  const std::function<bool(const CoveringRow&)>& possible_;
  std::set<Pair> missing_;
  std::map<CoveringRow, int> used_;
  std::vector<CoveringRow> rows_;
};

}  // namespace

std::vector<CoveringRow> covering_rows(const std::vector<int>& sizes,
                                       const std::function<bool(const CoveringRow&)>& possible) {
  PLUMBLINE_CHECK(sizes.size() >= 2, "pairs need two factors");
  return Covering(sizes, possible).build();
}

}  // namespace plumbline
