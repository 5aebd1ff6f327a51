// Exact factors.
#pragma once

#include <boost/multiprecision/cpp_int.hpp>
#include <optional>
#include <string>

namespace plumbline::proof {

using Rational = boost::multiprecision::cpp_rational;

/// The number that a program meant by `number`: the fraction with the smallest denominator, up to 2^20, that rounds to
/// this double, else the double itself. Programs divide numbers before they reach a tensor, so a third arrives rounded.
/// Nullopt for infinity and NaN.
std::optional<Rational> rational_of(double number);

/// The same for a number's text; nullopt if it is none.
std::optional<Rational> rational_of(const std::string& text);

/// "3", "1/4", "-2/3".
std::string to_string(const Rational& number);

}  // namespace plumbline::proof
