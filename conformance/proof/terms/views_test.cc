#include "conformance/proof/terms/views.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <random>

namespace plumbline::proof {
namespace {

/// By definition: number the base's elements in row-major order, and look up those of the view.
std::optional<std::vector<int32_t>> by_definition(const Layout& base, const Layout& view) {
  std::map<int64_t, int32_t> number;
  int32_t next = 0;
  bool distinct = true;
  for_each_offset(base, [&](int64_t offset) { distinct = number.emplace(offset, next++).second && distinct; });
  if (!distinct) return std::nullopt;
  std::vector<int32_t> found;
  bool inside = true;
  for_each_offset(view, [&](int64_t offset) {
    const auto element = number.find(offset);
    inside = inside && element != number.end();
    if (inside) found.push_back(element->second);
  });
  return inside ? std::optional(found) : std::nullopt;
}

int draw(std::mt19937& random, int least, int most) { return std::uniform_int_distribution(least, most)(random); }

/// Dense memory in some order of the dimensions, sometimes with gaps.
Layout any_base(std::mt19937& random) {
  Layout base;
  std::vector<size_t> order;
  for (int d = draw(random, 0, 3); d > 0; --d) {
    base.sizes.push_back(draw(random, 1, 4));
    order.push_back(order.size());
  }
  std::ranges::shuffle(order, random);
  base.strides.resize(base.sizes.size());
  int64_t stride = 1;
  for (const size_t d : order) {
    base.strides[d] = stride;
    stride *= base.sizes[d] + (draw(random, 0, 5) == 0 ? 1 : 0);
  }
  base.offset = draw(random, 0, 2);
  return base;
}

Layout any_view(std::mt19937& random, const Layout& base) {
  Layout view = base;
  for (int change = draw(random, 0, 3); change > 0; --change) {
    const int what = draw(random, 0, 4);
    const size_t rank = view.sizes.size();
    if (what == 0) {  // an expanded dimension
      view.sizes.insert(view.sizes.begin(), draw(random, 1, 3));
      view.strides.insert(view.strides.begin(), 0);
    } else if (rank == 0) {
      continue;
    } else if (what == 1) {  // a slice, perhaps with a step
      const size_t d = draw(random, 0, static_cast<int>(rank) - 1);
      const int64_t begin = draw(random, 0, static_cast<int>(view.sizes[d]) - 1), step = draw(random, 1, 2);
      view.offset += begin * view.strides[d];
      view.sizes[d] = (view.sizes[d] - begin + step - 1) / step;
      view.strides[d] *= step;
    } else if (what == 2 && rank > 1) {  // a transposition
      std::swap(view.sizes[0], view.sizes[1]);
      std::swap(view.strides[0], view.strides[1]);
    } else if (what == 3) {  // one dimension for all, as after a reshape; it may leave the base
      int64_t count = 1;
      for (const int64_t size : view.sizes) count *= size;
      view = {view.offset, {count}, {1}};
    } else {  // anything
      view = {draw(random, 0, 4), {draw(random, 1, 4), draw(random, 1, 3)}, {draw(random, 0, 5), draw(random, 0, 5)}};
    }
  }
  return view;
}

TEST(Views, ShowTheElementsOfTheDefinition) {
  int shown = 0, outside = 0;
  for (int seed = 0; seed < 4000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    const Layout base = any_base(random), view = any_view(random, base);
    const std::optional<std::vector<int32_t>> right = by_definition(base, view);
    Views views;
    const Views::Shared found = views.between(base, view);
    ASSERT_EQ(found != nullptr, right.has_value());
    ++(right ? shown : outside);
    if (!right) continue;
    EXPECT_EQ(found->list(), *right);
    EXPECT_EQ(found->count(), static_cast<int64_t>(right->size()));
    // A choice from the list is the same as from the loops.
    EXPECT_EQ(Picks(*right).text(), found->text());
    EXPECT_EQ(Picks(*right).range(), found->range());
    EXPECT_EQ(found->are_all(count_of(base.sizes)),
              *right == *by_definition({0, {count_of(base.sizes)}, {1}}, {0, {count_of(base.sizes)}, {1}}));
  }
  EXPECT_GT(shown, 1000);
  EXPECT_GT(outside, 100);
}

TEST(Views, AViewOfAViewShowsElementsOfTheFirst) {
  for (int seed = 0; seed < 4000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    const Layout base = any_base(random), view = any_view(random, base);
    const auto first = by_definition(base, view);
    if (!first) continue;
    // The view's elements lie densely somewhere else.
    Layout copy{0, view.sizes, {}};
    int64_t stride = count_of(view.sizes);
    for (const int64_t size : view.sizes) copy.strides.push_back(stride /= size);
    const Layout second_view = any_view(random, copy);
    const auto second = by_definition(copy, second_view);
    if (!second) continue;
    std::vector<int32_t> right;
    for (const int32_t i : *second) right.push_back(first->at(i));
    Views views;
    const Views::Shared found = views.both(views.between(base, view), views.between(copy, second_view));
    EXPECT_EQ(found->list(), right);
    EXPECT_EQ(found->text(), Picks(right).text());
  }
}

/// Of large choices the loops are the text, so these must be the same on all ways to them.
TEST(Views, LargeChoicesAreEqualOnEveryWay) {
  const int64_t n = 4096;
  const Layout dense{0, {n, n}, {n, 1}}, turned{0, {n, n}, {1, n}}, flat{0, {n * n}, {1}};
  Views views;
  const Views::Shared transposed = views.between(dense, turned);
  EXPECT_EQ(views.both(transposed, views.between(dense, flat))->text(), transposed->text());
  EXPECT_EQ(views.between(turned, dense)->text(), transposed->text());
  EXPECT_TRUE(views.both(transposed, transposed)->are_all(n * n));
  EXPECT_FALSE(transposed->are_all(n * n));
  EXPECT_NE(views.between(dense, {1, {n, n - 1}, {n, 1}})->text(),
            views.between(dense, {0, {n, n - 1}, {n, 1}})->text());
}

TEST(Views, PositionsBeyond32BitsAreNotCut) {
  const int64_t side = int64_t{1} << 18, far = int64_t{1} << 32;
  const Layout base{0, {side, side}, {side, 1}};
  Views views;
  const Views::Shared rows = views.between(base, {0, {4, 4}, {4 * far, far}});
  const Views::Shared columns = views.between(base, {0, {4, 4}, {far, 4 * far}});
  EXPECT_NE(rows->text(), columns->text());
  EXPECT_NE(rows->text(), views.between(base, {0, {4, 4}, {0, 0}})->text());
}

}  // namespace
}  // namespace plumbline::proof
