#include "conformance/proof/rows/row_type.h"

#include <cstdlib>
#include <string>

#include "runtime/error.h"

namespace plumbline::proof {

Power operator+(const Power& a, const Power& b) {
  Power sum = a;
  for (const auto& [share, exponent] : b)
    if ((sum[share] += exponent) == 0) sum.erase(share);
  return sum;
}

Power operator-(const Power& a, const Power& b) {
  Power negative;
  for (const auto& [share, exponent] : b) negative.emplace(share, -exponent);
  return a + negative;
}

bool is_one(const Power& power) { return power.empty(); }

Rational value_of(const Power& power, const std::vector<Share>& shares, size_t microbatch) {
  Rational value = 1;
  for (const auto& [share, exponent] : power)
    for (int i = 0; i < std::abs(exponent); ++i) {
      const Rational& part = shares.at(share).parts.at(microbatch);
      if (exponent < 0 && part == 0)
        throw InputError("micro-batch " + std::to_string(microbatch) +
                         " has none of the targets that count, and its loss is "
                         "divided by their number");
      if (exponent > 0)
        value *= part;
      else
        value /= part;
    }
  return value;
}

RowType not_separable(int cause) { return {.kind = RowType::Kind::NotSeparable, .cause = cause}; }

}  // namespace plumbline::proof
