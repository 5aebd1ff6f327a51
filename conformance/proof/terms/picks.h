// Picks: a choice of elements from a list, in an order, as a view makes it from the value behind it.
//
// Views of strided memory choose evenly spaced elements, so a choice is kept as loops, whatever its size. One that no
// loops describe (a view over views whose elements do not lie evenly) is kept as a list.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace plumbline::proof {

/// Positions first + i1 * stride1 + i2 * stride2 + ..., where the last index runs fastest.
struct Loops {
  struct Loop {
    int64_t count = 0, stride = 0;
    bool operator==(const Loop&) const = default;
  };
  int64_t first = 0;
  std::vector<Loop> loops;

  bool operator==(const Loops&) const = default;
};

/// A digit of a position: position = sum of digit * weight, and each weight is at least the next one's times its size.
/// The same digits give a position in another list: sum of digit * other.
struct Digit {
  int64_t size = 0, weight = 0, other = 0;
};

/// The positions in the other list that have the same digits; `digits` by descending weight. nullopt if a position has
/// no digits, or if no loops describe the result.
std::optional<Loops> elsewhere(const Loops& loops, std::span<const Digit> digits);

/// The loops that a text() of Picks tells; nullopt if it is a SHA-256.
std::optional<Loops> loops_of_text(std::string_view text);

class Picks {
 public:
  explicit Picks(Loops loops);
  /// One that loops describe becomes loops.
  explicit Picks(std::vector<int32_t> list);

  int64_t count() const { return count_; }
  /// Whether they are all of `size` elements, in order.
  bool are_all(int64_t size) const;
  /// The elements of `before` at these positions.
  Picks of(const Picks& before) const;
  /// "from 0 to 5"
  const std::string& range() const { return range_; }
  /// Equal choices have equal texts: the first position and the loops, outermost first, as "16+4x8,2x1," (count x
  /// stride); a SHA-256 of the list where no loops describe it.
  const std::string& text() const { return text_; }
  /// nullopt: no loops describe it.
  const std::optional<Loops>& loops() const { return loops_; }
  /// The positions. Throws Error if there are too many.
  std::vector<int32_t> list() const;

 private:
  void describe();

  std::optional<Loops> loops_;
  std::vector<int32_t> list_;     ///< without loops
  int64_t count_ = 0, last_ = 0;  ///< last_: the largest position
  std::string range_, text_;
};

}  // namespace plumbline::proof
