// Internals of the knapsack solvers: the table, PyTorch's quantisation, and the greedy order.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <vector>

#include "runtime/error.h"
#include "runtime/partition/budget/knapsack.h"

namespace plumbline::partition {

/// PyTorch's quantisation: a capacity of 1 is 10 000 ticks. Rounds to nearest, halves to even, like Python.
inline int64_t ticks(double amount) { return static_cast<int64_t>(std::nearbyint(amount * 10000)); }

inline std::vector<int64_t> ticks(const std::vector<double>& amounts) {
  std::vector<int64_t> result;
  result.reserve(amounts.size());
  for (double amount : amounts) result.push_back(ticks(amount));
  return result;
}

inline void check_capacity(double capacity) { PLUMBLINE_CHECK(capacity >= 0, "a knapsack's capacity is not negative"); }

/// Aborts if the problem is malformed (KnapsackProblem).
inline void check(const KnapsackProblem& problem) {
  PLUMBLINE_CHECK(problem.weights.size() == problem.values.size(), "a knapsack's items have one weight and one value");
  check_capacity(problem.capacity);
}

/// Returns all items: those of weight 0 first, then by value per weight, best first; equal ratios keep their order.
inline std::vector<int> by_value_for_weight(std::span<const double> weights, std::span<const double> values) {
  std::vector<double> ratio(weights.size());
  for (size_t i = 0; i < weights.size(); ++i)
    ratio[i] = weights[i] == 0 ? std::numeric_limits<double>::infinity() : values[i] / weights[i];
  std::vector<int> order(weights.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return ratio[a] > ratio[b]; });
  return order;
}

/// Packs 64 flags (0 or 1) into the bits of a word, eight at a time: the product puts flag k at bit 56 + k without
/// collisions.
inline uint64_t as_bits(const uint8_t* flags) {
  uint64_t bits = 0;
  for (int byte = 0; byte < 8; ++byte) {
    uint64_t eight = 0;
    for (int k = 0; k < 8; ++k) eight |= uint64_t{flags[8 * byte + k]} << 8 * k;
    bits |= (eight * 0x0102040810204080) >> 56 << 8 * byte;
  }
  return bits;
}

/// Bellman's table of the 0-1 knapsack: row i has the largest value of the first i items for every capacity. Stores the
/// last row, and one bit per cell of every row: whether item i raised that cell. choose() reconstructs a choice from
/// these bits. Sums are computed in T, in the order of the items.
template <class T>
class KnapsackTable {
 public:
  /// Weights and capacity are in ticks(). `weights` must outlive the table; `values` need not.
  KnapsackTable(std::span<const int64_t> weights, std::span<const double> values, int64_t capacity)
      : weights_(weights) {
    // A capacity beyond the sum of all weights makes no difference.
    capacity_ = std::min(capacity, std::accumulate(weights.begin(), weights.end(), int64_t{0}));
    blocks_ = capacity_ / kBlock + 1;
    row_.assign(blocks_ * kBlock, T{0});
    raised_.assign(weights.size() * blocks_, 0);
    for (size_t i = 0; i < weights.size(); ++i) add_item(weights[i], static_cast<T>(values[i]), &raised_[i * blocks_]);
  }

  /// Returns the best choice for `capacity` (in ticks, 0 to the constructor's capacity).
  KnapsackChoice choose(int64_t capacity) const {
    int64_t left = std::min(capacity, capacity_);
    KnapsackChoice choice{.value = static_cast<double>(row_[left]), .kept = {}};
    for (size_t i = weights_.size(); i-- > 0;) {
      if (!(raised_[i * blocks_ + left / kBlock] >> left % kBlock & 1)) continue;
      choice.kept.push_back(static_cast<int>(i));
      left -= weights_[i];
    }
    std::reverse(choice.kept.begin(), choice.kept.end());
    return choice;
  }

 private:
  static constexpr int64_t kBlock = 64;  // cells, one word of bits

  /// Iterates from the highest capacity down, so that lower cells still hold the previous row.
  void add_item(int64_t weight, T value, uint64_t* raised) {
    for (int64_t block = blocks_ - 1; block >= 0 && (block + 1) * kBlock > weight; --block) {
      T* const cells = row_.data() + block * kBlock;
      T candidates[kBlock];
      const int64_t without = block * kBlock - weight;  // the capacity left beside the item in the first cell
      if (without >= 0) {
        const T* const before = row_.data() + without;
        for (int64_t k = 0; k < kBlock; ++k) candidates[k] = before[k] + value;
      } else {
        std::fill_n(candidates, -without, -std::numeric_limits<T>::infinity());
        for (int64_t k = -without; k < kBlock; ++k) candidates[k] = row_[without + k] + value;
      }
      // Plain loops of constant length, which the compiler vectorises.
      uint8_t better[kBlock];
      for (int64_t k = 0; k < kBlock; ++k) better[k] = candidates[k] > cells[k] ? 1 : 0;
      for (int64_t k = 0; k < kBlock; ++k) cells[k] = candidates[k] > cells[k] ? candidates[k] : cells[k];
      raised[block] = as_bits(better);
    }
  }

  std::span<const int64_t> weights_;
  int64_t capacity_ = 0, blocks_ = 0;
  std::vector<T> row_;
  std::vector<uint64_t> raised_;  // by item, then by block
};

}  // namespace plumbline::partition
