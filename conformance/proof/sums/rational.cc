#include "conformance/proof/sums/rational.h"

#include <cmath>

#include "runtime/text/number.h"

namespace plumbline::proof {
namespace {

constexpr double kLargestDenominator = 1 << 20;
constexpr double kLargestInteger = 9007199254740992.0;  // 2^53: above, quotients of doubles are not exact enough

}  // namespace

std::optional<Rational> rational_of(double number) {
  if (!std::isfinite(number)) return std::nullopt;
  // The convergents p/q of the continued fraction have the smallest denominators among the fractions as near.
  double p = 1, q = 0, p_before = 0, q_before = 1, rest = std::abs(number);
  for (int i = 0; i < 64; ++i) {
    const double whole = std::floor(rest);
    const double p_next = whole * p + p_before, q_next = whole * q + q_before;
    if (q_next > kLargestDenominator || p_next > kLargestInteger) break;
    p_before = p, q_before = q, p = p_next, q = q_next;
    if (p / q == std::abs(number)) {
      const Rational found(static_cast<int64_t>(p), static_cast<int64_t>(q));
      return number < 0 ? Rational(-found) : found;
    }
    if (rest == whole) break;
    rest = 1 / (rest - whole);
  }
  return Rational(number);
}

std::optional<Rational> rational_of(const std::string& text) {
  const std::optional<double> number = parse_number<double>(text);
  return number ? rational_of(*number) : std::nullopt;
}

std::string to_string(const Rational& number) { return number.str(); }

}  // namespace plumbline::proof
