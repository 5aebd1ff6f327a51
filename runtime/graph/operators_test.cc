#include <ATen/core/dispatch/Dispatcher.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "runtime/testing/refusal.h"

namespace plumbline::graph {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();
constexpr int64_t kLeast = std::numeric_limits<int64_t>::min(), kMost = std::numeric_limits<int64_t>::max();

c10::Scalar computed(const std::string& operation, const c10::Scalar& a, const c10::Scalar& b) {
  std::vector<c10::IValue> stack = {a, b};
  c10::Dispatcher::singleton().findSchemaOrThrow(("plumbline::" + operation).c_str(), "").callBoxed(&stack);
  return stack.at(0).toScalar();
}

void expect_same(const c10::Scalar& number, double expected) {
  EXPECT_TRUE(number.isFloatingPoint());
  EXPECT_EQ(number.toDouble(), expected);
  EXPECT_EQ(std::signbit(number.toDouble()), std::signbit(expected));
}

void expect_same(const c10::Scalar& number, int64_t expected) {
  EXPECT_TRUE(number.isIntegral(/*includeBool=*/false));
  EXPECT_EQ(number.toLong(), expected);
}

/// The results of Python's a % b and a // b.
template <class Number>
struct Division {
  Number a, b, remainder, quotient;
};

TEST(NumberOperators, DivideAsInPython) {
  const std::vector<Division<double>> floats = {
      {5.0, kInfinite, 5.0, 0.0},
      {-5.0, kInfinite, kInfinite, -1.0},
      {5.0, -kInfinite, -kInfinite, -1.0},
      {-5.0, -kInfinite, -5.0, 0.0},
      {1.0, 0.1, 0.09999999999999995, 9.0},
      {-1.0, 0.1, 5.551115123125783e-17, -10.0},
      {1.0, -0.1, -5.551115123125783e-17, -10.0},
      {7.5, 2.0, 1.5, 3.0},
      {-7.5, 2.0, 0.5, -4.0},
      {7.5, -2.0, -0.5, -4.0},
      {-7.5, -2.0, -1.5, 3.0},
      {6.0, -3.0, -0.0, -2.0},
      {-6.0, 3.0, 0.0, -2.0},
      {0.0, 3.0, 0.0, 0.0},
      {-0.0, 3.0, 0.0, -0.0},
      {0.0, -3.0, -0.0, -0.0},
      {1e+300, 1e-10, 5.476641984772742e-11, kInfinite},
      {5.0, 0.3, 0.20000000000000018, 16.0},
      {-1e-20, 1.0, 1.0, -1.0},
      {0.3, 0.1, 0.09999999999999998, 2.0},
      {0.5, 1.0, 0.5, 0.0},
      {1e+17, 7.0, 5.0, 1.4285714285714286e+16},
  };
  const std::vector<Division<int64_t>> whole = {
      {7, 2, 1, 3},
      {-7, 2, 1, -4},
      {7, -2, -1, -4},
      {-7, -2, -1, 3},
      {6, -3, 0, -2},
      {0, -5, 0, 0},
      {kLeast, 1, 0, kLeast},
      {kLeast, 2, 0, -4611686018427387904},
      {kMost, -1, 0, -kMost},
      {kLeast, kMost, 9223372036854775806, -2},
      {kLeast, 3, 1, -3074457345618258603},
  };
  const auto check = [](const auto& divisions) {
    for (const auto& [a, b, remainder, quotient] : divisions) {
      SCOPED_TRACE(std::to_string(a) + " by " + std::to_string(b));
      expect_same(computed("number_mod", a, b), remainder);
      expect_same(computed("number_floordiv", a, b), quotient);
    }
  };
  check(floats);
  check(whole);
  expect_same(computed("number_mod", int64_t{5}, 0.3), 0.20000000000000018);
  expect_same(computed("number_mod", kLeast, int64_t{-1}), int64_t{0});
}

TEST(NumberOperators, PowersAreThoseOfPython) {
  struct Power {
    int64_t base, exponent, result;
  };
  const std::vector<Power> powers = {
      {3, 5, 243},
      {-3, 5, -243},
      {2, 62, 4611686018427387904},
      {-2, 63, kLeast},
      {-1, 1000000000000000000, 1},
      {-1, 1000000000000000001, -1},
      {1, 1000000000000000000, 1},
      {0, 1000000000000000000, 0},
      {0, 0, 1},
      {3037000499, 2, 9223372030926249001},
      {7, 22, 3909821048582988049},
      {10, 18, 1000000000000000000},
      {kMost, 1, kMost},
      {kLeast, 1, kLeast},
      {kLeast, 0, 1},
  };
  for (const auto& [base, exponent, result] : powers) {
    SCOPED_TRACE(std::to_string(base) + " to " + std::to_string(exponent));
    expect_same(computed("number_pow", base, exponent), result);
  }
  expect_same(computed("number_pow", int64_t{2}, int64_t{-1}), 0.5);
}

TEST(NumberOperators, ResultsBeyond64BitsAreRefused) {
  const auto refused = [](const char* operation, int64_t a, int64_t b) {
    return testing::failure([&] { computed(operation, a, b); });
  };
  for (const auto& [base, exponent] :
       std::vector<std::pair<int64_t, int64_t>>{{2, 63}, {-2, 64}, {3037000500, 2}, {3, 40}, {10, kMost}, {kLeast, 2}})
    EXPECT_EQ(refused("number_pow", base, exponent), "the result of plumbline::number_pow does not fit into 64 bits")
        << base << " to " << exponent;
  EXPECT_EQ(refused("number_floordiv", kLeast, -1),
            "the result of plumbline::number_floordiv does not fit into 64 bits");
  EXPECT_EQ(refused("number_mod", 1, 0), "integer division by zero");
  EXPECT_EQ(refused("number_add", kMost, 1), "the result of plumbline::number_add does not fit into 64 bits");
  EXPECT_EQ(refused("number_sub", kLeast, 1), "the result of plumbline::number_sub does not fit into 64 bits");
  EXPECT_EQ(refused("number_mul", kMost, 2), "the result of plumbline::number_mul does not fit into 64 bits");
  expect_same(computed("number_add", kMost - 1, int64_t{1}), kMost);
  expect_same(computed("number_sub", kLeast + 1, int64_t{1}), kLeast);
  expect_same(computed("number_mul", kMost / 2, int64_t{-2}), -(kMost / 2) * 2);
  expect_same(computed("number_add", kMost, 1.0), 9223372036854775808.0);
}

}  // namespace
}  // namespace plumbline::graph
