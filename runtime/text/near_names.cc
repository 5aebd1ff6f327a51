#include "runtime/text/near_names.h"

#include <algorithm>
#include <numeric>
#include <tuple>

namespace plumbline {
namespace {

/// The edit distance from each prefix of `text` to `asked`, indexed by the prefix's length (Damerau-Levenshtein in its
/// restricted form: no letter is edited twice).
std::vector<size_t> distances(std::string_view text, std::string_view asked) {
  std::vector<size_t> before, last(asked.size() + 1), row(asked.size() + 1), all;
  std::iota(last.begin(), last.end(), size_t{0});
  all.push_back(last.back());
  for (size_t i = 1; i <= text.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= asked.size(); ++j) {
      const size_t replaced = last[j - 1] + (text[i - 1] == asked[j - 1] ? 0 : 1);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, replaced});
      if (i > 1 && j > 1 && text[i - 1] == asked[j - 2] && text[i - 2] == asked[j - 1])
        row[j] = std::min(row[j], before[j - 2] + 1);
    }
    all.push_back(row.back());
    before = last, last = row;
  }
  return all;
}

/// The least distance to `asked` from any run of consecutive words of `name`, which "-" separates.
size_t distance_of_words(std::string_view name, std::string_view asked) {
  size_t least = asked.size() + name.size();
  for (size_t begin = 0; begin <= name.size(); ++begin) {
    if (begin > 0 && name[begin - 1] != '-') continue;
    const std::string_view rest = name.substr(begin);
    const std::vector<size_t> to = distances(rest, asked);
    for (size_t end = 1; end <= rest.size(); ++end)
      if (end == rest.size() || rest[end] == '-') least = std::min(least, to[end]);
  }
  return least;
}

}  // namespace

std::vector<std::string> near_names(const std::vector<std::string>& names, std::string_view asked) {
  std::vector<std::tuple<size_t, size_t, size_t>> ranked;
  for (size_t i = 0; i < names.size(); ++i)
    ranked.emplace_back(distance_of_words(names[i], asked), distances(names[i], asked).back(), i);
  std::ranges::sort(ranked);
  std::vector<std::string> near;
  for (size_t i = 0; i < std::min<size_t>(3, ranked.size()); ++i) near.push_back(names[std::get<2>(ranked[i])]);
  return near;
}

}  // namespace plumbline
