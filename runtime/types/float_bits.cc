#include "runtime/types/float_bits.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace plumbline::types {
namespace {

int fraction_bits(const DtypeInfo& format) { return format.digits - 1; }  // the leading bit is not stored

uint64_t sign_bit(const DtypeInfo& format) { return uint64_t{1} << (8 * format.bytes - 1); }

/// All bits of the exponent, and none of the fraction.
uint64_t infinity_bits(const DtypeInfo& format) { return sign_bit(format) - (uint64_t{1} << fraction_bits(format)); }

}  // namespace

double value_of_bits(uint64_t bits, const DtypeInfo& format) {
  const uint64_t size = bits & (sign_bit(format) - 1);
  const uint64_t fraction = size & ((uint64_t{1} << fraction_bits(format)) - 1);
  const auto exponent = static_cast<int>(size >> fraction_bits(format));
  double value;
  if (size >= infinity_bits(format)) {
    value = fraction == 0 ? std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
  } else {
    // Exponent 0 is that of the subnormal numbers, which have no leading bit.
    const uint64_t steps = exponent == 0 ? fraction : fraction + (uint64_t{1} << fraction_bits(format));
    value = std::ldexp(static_cast<double>(steps), std::max(exponent - 1, 0) + format.smallest - fraction_bits(format));
  }
  return (bits & sign_bit(format)) != 0 ? -value : value;
}

uint64_t nearest_bits(double value, const DtypeInfo& format) {
  if (std::isnan(value)) return infinity_bits(format) + (uint64_t{1} << (fraction_bits(format) - 1));
  uint64_t bits = infinity_bits(format);
  if (value == 0) {
    bits = 0;
  } else if (!std::isinf(value)) {
    const int exponent = std::max(std::ilogb(value), format.smallest);
    const auto steps =
        static_cast<uint64_t>(std::nearbyint(std::ldexp(std::abs(value), fraction_bits(format) - exponent)));
    // A number from 1 on, and one rounded up to a power of two, carry their leading bit into the exponent.
    const auto above_smallest = static_cast<uint64_t>(exponent - format.smallest);
    bits = std::min((above_smallest << fraction_bits(format)) + steps, bits);
  }
  return std::signbit(value) ? bits + sign_bit(format) : bits;
}

int64_t steps_from_zero(double value, const DtypeInfo& format) {
  const auto steps = static_cast<int64_t>(nearest_bits(std::abs(value), format));
  return value < 0 ? -steps : steps;
}

}  // namespace plumbline::types
