#include "conformance/proof/terms/picks.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "runtime/error.h"
#include "runtime/io/sha256.h"
#include "runtime/text/number.h"

namespace plumbline::proof {
namespace {

/// The largest position that a list holds.
constexpr int64_t kMostPosition = std::numeric_limits<int32_t>::max();

constexpr int64_t kMostListed = int64_t{1} << 26;

/// Equal positions have equal loops: none of one element, and no two that are one.
Loops canonical(const Loops& loops) {
  Loops result{loops.first, {}};
  for (const Loops::Loop& loop : loops.loops) {
    if (loop.count == 1) continue;
    if (!result.loops.empty() && result.loops.back().stride == loop.count * loop.stride) {
      result.loops.back() = {result.loops.back().count * loop.count, loop.stride};
      continue;
    }
    result.loops.push_back(loop);
  }
  return result;
}

int64_t count_of(const Loops& loops) {
  int64_t count = 1;
  for (const Loops::Loop& loop : loops.loops) count *= loop.count;
  return count;
}

template <class Visit>
void for_each(const Loops& loops, size_t depth, int64_t position, const Visit& visit) {
  if (depth == loops.loops.size()) return visit(position);
  const Loops::Loop& loop = loops.loops[depth];
  for (int64_t i = 0; i < loop.count; ++i) for_each(loops, depth + 1, position + i * loop.stride, visit);
}

/// The loops that visit a list: its longest even beginning is the innermost one, and so on outwards.
std::optional<Loops> loops_of(const std::vector<int32_t>& list) {
  if (list.empty()) return std::nullopt;
  Loops found{list.front(), {}};
  const auto size = static_cast<int64_t>(list.size());
  for (int64_t block = 1; block < size;) {
    const int64_t stride = int64_t{list[block]} - list[0];
    int64_t count = 2;
    while (count * block < size && list[count * block] - int64_t{list[0]} == count * stride) ++count;
    found.loops.insert(found.loops.begin(), {count, stride});
    block *= count;
    if (size % block != 0) return std::nullopt;
  }
  bool same = true;
  size_t i = 0;
  for_each(found, 0, found.first, [&](int64_t position) { same = same && list[i++] == position; });
  return same ? std::optional(std::move(found)) : std::nullopt;
}

}  // namespace

std::optional<Loops> elsewhere(const Loops& loops, std::span<const Digit> digits) {
  Loops result;
  std::vector<int64_t> largest(digits.size());  // of each digit
  int64_t rest = loops.first;
  if (rest < 0) return std::nullopt;
  for (size_t k = 0; k < digits.size(); ++k) {
    largest[k] = rest / digits[k].weight;
    rest %= digits[k].weight;
    if (largest[k] >= digits[k].size) return std::nullopt;
    result.first += largest[k] * digits[k].other;
  }
  if (rest != 0) return std::nullopt;
  for (const Loops::Loop& loop : loops.loops) {
    if (loop.stride == 0 || loop.count == 1) {
      result.loops.push_back({loop.count, 0});
      continue;
    }
    if (loop.stride < 0) return std::nullopt;
    std::vector<Loops::Loop> parts;  // innermost first
    int64_t count = loop.count, stride = loop.stride;
    while (count > 1) {
      size_t k = 0;
      while (k < digits.size() && stride % digits[k].weight != 0) ++k;
      if (k == digits.size()) return std::nullopt;
      const int64_t step = stride / digits[k].weight;
      int64_t here = count;
      if (largest[k] + (count - 1) * step >= digits[k].size) {
        // The digit runs through all its values while the next one stays.
        here = digits[k].size / step;
        const bool whole = k > 0 && largest[k] == 0 && digits[k].size % step == 0 && count % here == 0 && here > 1 &&
                           digits[k - 1].weight == digits[k].weight * digits[k].size;
        if (!whole) return std::nullopt;
      }
      parts.push_back({here, step * digits[k].other});
      largest[k] += (here - 1) * step;
      count /= here;
      stride *= here;
    }
    result.loops.insert(result.loops.end(), parts.rbegin(), parts.rend());
  }
  return canonical(result);
}

std::optional<Loops> loops_of_text(std::string_view text) {
  const auto take_before = [&text](char end) -> std::optional<int64_t> {
    const std::optional<int64_t> number = take_number<int64_t>(text);
    if (!text.starts_with(end)) return std::nullopt;
    text.remove_prefix(1);
    return number;
  };
  const std::optional<int64_t> first = take_before('+');
  if (!first) return std::nullopt;
  Loops loops{*first, {}};
  while (!text.empty()) {
    const std::optional<int64_t> count = take_before('x'), stride = count ? take_before(',') : std::nullopt;
    if (!stride) return std::nullopt;
    loops.loops.push_back({*count, *stride});
  }
  return loops;
}

Picks::Picks(Loops loops) : loops_(canonical(loops)) { describe(); }

Picks::Picks(std::vector<int32_t> list) : loops_(loops_of(list)) {
  if (!loops_) list_ = std::move(list);
  describe();
}

void Picks::describe() {
  int64_t first = 0, last = 0;
  if (loops_) {
    count_ = count_of(*loops_);
    first = last = loops_->first;
    for (const Loops::Loop& loop : loops_->loops) (loop.stride < 0 ? first : last) += (loop.count - 1) * loop.stride;
  } else {
    count_ = static_cast<int64_t>(list_.size());
    const auto [least, most] = std::ranges::minmax(list_);
    first = least;
    last = most;
  }
  range_ = "from " + std::to_string(first) + " to " + std::to_string(last);
  last_ = last;
  if (!loops_) {
    text_ = sha256({reinterpret_cast<const char*>(list_.data()), list_.size() * sizeof list_[0]});
    return;
  }
  text_ = std::to_string(loops_->first) + "+";
  for (const Loops::Loop& loop : loops_->loops)
    text_ += std::to_string(loop.count) + "x" + std::to_string(loop.stride) + ",";
}

bool Picks::are_all(int64_t size) const {
  static const auto one = [](int64_t count) { return canonical({0, {{count, 1}}}); };
  return count_ == size && loops_ && *loops_ == one(size);
}

std::vector<int32_t> Picks::list() const {
  if (!loops_) return list_;
  if (count_ > kMostListed || last_ > kMostPosition)
    throw Error("proof: a view of too many elements that do not lie evenly");
  std::vector<int32_t> all;
  all.reserve(count_);
  for_each(*loops_, 0, loops_->first, [&](int64_t position) { all.push_back(static_cast<int32_t>(position)); });
  return all;
}

Picks Picks::of(const Picks& before) const {
  if (loops_ && before.loops_) {
    std::vector<Digit> digits;
    int64_t weight = before.count_;
    for (const Loops::Loop& loop : before.loops_->loops) {
      weight /= loop.count;
      digits.push_back({loop.count, weight, loop.stride});
    }
    if (digits.empty()) digits.push_back({1, 1, 0});
    if (std::optional<Loops> both = elsewhere(*loops_, digits)) {
      both->first += before.loops_->first;
      return Picks(std::move(*both));
    }
  }
  const std::vector<int32_t> from = before.list();
  std::vector<int32_t> both;
  for (const int32_t i : list()) both.push_back(from.at(i));
  return Picks(std::move(both));
}

}  // namespace plumbline::proof
