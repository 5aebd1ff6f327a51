#include "conformance/plan/covering.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <tuple>

#include "runtime/error.h"

namespace plumbline::conformance {
namespace {

/// The worth of a row when it was last computed; it never grows.
struct Worth {
  int missing, chosen_of_group, row;
  bool operator<(const Worth& other) const {
    return std::tuple(missing, -chosen_of_group, -row) < std::tuple(other.missing, -other.chosen_of_group, -other.row);
  }
  bool operator==(const Worth&) const = default;
};

int size_of(const std::vector<int>& numbers) {
  return numbers.empty() ? 0 : *std::max_element(numbers.begin(), numbers.end()) + 1;
}

}  // namespace

std::vector<int> covering_rows(const std::vector<std::vector<int>>& shows, const std::vector<int>& groups) {
  PLUMBLINE_CHECK(shows.size() == groups.size(), "every row is of a group");
  int things = 0;
  for (const std::vector<int>& row : shows) things = std::max(things, size_of(row));
  std::vector<char> shown(static_cast<size_t>(things));
  std::vector<int> chosen_of(static_cast<size_t>(size_of(groups)));
  const auto worth_now = [&](int row) -> Worth {
    int missing = 0;
    for (const int thing : shows[static_cast<size_t>(row)]) missing += !shown[static_cast<size_t>(thing)];
    return {missing, chosen_of[static_cast<size_t>(groups[static_cast<size_t>(row)])], row};
  };
  // Not a std::priority_queue: the checks of libstdc++'s debug mode read the whole heap at each push and pop.
  std::set<Worth> queue;
  for (int row = 0; row < static_cast<int>(shows.size()); ++row) queue.insert(worth_now(row));
  std::vector<int> chosen;
  while (!queue.empty()) {
    auto last = queue.extract(std::prev(queue.end()));
    const Worth best = last.value();
    last.value() = worth_now(best.row);
    if (last.value().missing == 0) continue;
    if (!(last.value() == best)) {
      queue.insert(std::move(last));
      continue;
    }
    chosen.push_back(best.row);
    ++chosen_of[static_cast<size_t>(groups[static_cast<size_t>(best.row)])];
    for (const int thing : shows[static_cast<size_t>(best.row)]) shown[static_cast<size_t>(thing)] = true;
  }
  std::sort(chosen.begin(), chosen.end());
  return chosen;
}

}  // namespace plumbline::conformance
