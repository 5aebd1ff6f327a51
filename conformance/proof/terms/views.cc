#include "conformance/proof/terms/views.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "runtime/error.h"

namespace plumbline::proof {
namespace {

/// The most elements of memory that are listed one by one.
constexpr int64_t kMostElements = int64_t{1} << 26;

/// The dimensions of memory that holds each element once; empty if strides do not tell.
std::optional<std::vector<Digit>> digits_of(const Layout& base) {
  std::vector<Digit> digits;
  int64_t place = 1;  // of the dimension in row-major order
  for (size_t d = base.sizes.size(); d-- > 0;) {
    if (base.sizes[d] != 1) digits.push_back({base.sizes[d], base.strides[d], place});
    place *= base.sizes[d];
  }
  std::ranges::stable_sort(digits, std::ranges::greater(), &Digit::weight);
  for (size_t k = 0; k < digits.size(); ++k) {
    const int64_t below = k + 1 < digits.size() ? digits[k + 1].weight * digits[k + 1].size : 1;
    if (digits[k].weight < below) return std::nullopt;
  }
  return digits;
}

/// The last offset of a layout whose strides are not negative.
int64_t last_of(const Layout& layout) {
  int64_t last = layout.offset;
  for (size_t d = 0; d < layout.sizes.size(); ++d) last += layout.strides[d] * (layout.sizes[d] - 1);
  return last;
}

std::optional<Picks> listed(const Layout& base, const Layout& view) {
  const int64_t first = base.offset, last = last_of(base);
  if (view.offset < first || last_of(view) > last) return std::nullopt;
  if (last - first >= kMostElements) throw Error("proof: a view of a large value whose elements do not lie evenly");
  std::vector<int32_t> at(last - first + 1, -1);
  int32_t elements = 0;
  bool distinct = true;
  for_each_offset(base, [&](int64_t offset) {
    distinct = distinct && at[offset - first] < 0;
    at[offset - first] = elements++;
  });
  if (!distinct) return std::nullopt;
  std::vector<int32_t> found;
  bool inside = true;
  for_each_offset(view, [&](int64_t offset) {
    inside = inside && offset >= first && offset <= last && at[offset - first] >= 0;
    if (inside) found.push_back(at[offset - first]);
  });
  return inside ? std::optional(Picks(std::move(found))) : std::nullopt;
}

std::optional<Picks> shown(const Layout& base, const Layout& view) {
  if (const std::optional<std::vector<Digit>> digits = digits_of(base)) {
    Loops loops{view.offset - base.offset, {}};
    for (size_t d = 0; d < view.sizes.size(); ++d) loops.loops.push_back({view.sizes[d], view.strides[d]});
    if (std::optional<Loops> found = elsewhere(loops, *digits)) return Picks(std::move(*found));
  }
  return listed(base, view);
}

void append(std::string& key, const Sizes& numbers) {
  const size_t count = numbers.size();
  key.append(reinterpret_cast<const char*>(&count), sizeof count);
  key.append(reinterpret_cast<const char*>(numbers.data()), count * sizeof numbers[0]);
}

}  // namespace

Views::Shared Views::between(const Layout& base, const Layout& view) {
  std::string key;
  append(key, {view.offset - base.offset});
  for (const Sizes* numbers : {&base.sizes, &base.strides, &view.sizes, &view.strides}) append(key, *numbers);
  if (const auto known = between_.find(key); known != between_.end()) return known->second;
  std::optional<Picks> picks = shown(base, view);
  return between_[key] = picks ? std::make_shared<const Picks>(std::move(*picks)) : nullptr;
}

Views::Shared Views::both(const Shared& before, const Shared& after) {
  if (!before) return after;
  if (const auto known = both_.find({before, after}); known != both_.end()) return known->second;
  return both_[{before, after}] = std::make_shared<const Picks>(after->of(*before));
}

}  // namespace plumbline::proof
