// The type of a value: how the value in the step of the whole batch follows from the values at the same place in the
// steps of the micro-batches.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "conformance/proof/sums/rational.h"

namespace plumbline::proof {

/// What each micro-batch has of something that adds up over the batch: its rows, or its targets that count. The parts
/// of a share add up to 1.
struct Share {
  std::string of;               ///< "rows", or the operator that divided by it
  std::vector<Rational> parts;  ///< by micro-batch
};

/// The number of the share of rows, the first in StepTypes::shares (row_types.h).
inline constexpr int kRows = 0;

/// A product of powers of shares: the exponent, which is not 0, by the number of the share.
using Power = std::map<int, int>;

Power operator+(const Power& a, const Power& b);
Power operator-(const Power& a, const Power& b);
bool is_one(const Power& power);
/// Its value for a micro-batch. Throws InputError if that is a division by a share of 0.
Rational value_of(const Power& power, const std::vector<Share>& shares, size_t microbatch);

/// Let V be the value for the whole batch, V(m) that of micro-batch m, and f(m) the power for m.
struct RowType {
  enum class Kind {
    Zero,          ///< all are zeros, of any sizes
    Replicated,    ///< V = f(m) V(m) for every m, of the same sizes
    Rows,          ///< V is cut along one dimension; the slices of the rows of m are f(m) V(m), in order
    Sum,           ///< V is the sum of the f(m) V(m), of the same sizes
    NotSeparable,  ///< nothing is known; `cause` says why
  };
  Kind kind = Kind::Replicated;
  Power power = {};
  int dim = 0;                     ///< of Rows
  std::vector<int32_t> rows = {};  ///< of Rows: the row of each slice; kAnyRow for all if the slices are equal
  int cause = -1;                  ///< of NotSeparable: index in StepTypes::causes

  bool is(Kind other) const { return kind == other; }
};

inline constexpr int32_t kAnyRow = -3;

RowType not_separable(int cause);

}  // namespace plumbline::proof
