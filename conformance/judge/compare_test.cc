#include "conformance/judge/compare.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "conformance/judge/testing/f32.h"
#include "runtime/error.h"

namespace plumbline::conformance {
namespace {

using testing::f32;

constexpr double inf = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();
const std::string key = "0/backward/2/3/v17";

HostTensor i64(const std::vector<int64_t>& values) {
  HostTensor tensor{"I64", {static_cast<int64_t>(values.size())}, std::vector<std::byte>(values.size() * 8)};
  std::memcpy(tensor.data.data(), values.data(), tensor.data.size());
  return tensor;
}

TEST(Compare, NumericTreatsZerosAlikeAndNaNAsNothing) {
  const TensorMap expected = {{key, f32({2}, {0.0f, 1.0f})}};
  EXPECT_TRUE(compare(expected, {{key, f32({2}, {-0.0f, 1.0f})}}, CompareMode::Numeric).empty());
  const TensorMap nans = {{key, f32({2}, {0.0f, std::nanf("")})}};
  const auto differences = compare(nans, nans, CompareMode::Numeric);
  ASSERT_EQ(differences.size(), 1u);
  EXPECT_EQ(differences[0].index, 1);
  EXPECT_EQ(differences[0].max_abs, inf);
  EXPECT_EQ(differences[0].relative_norm, inf);
}

TEST(Compare, BitwiseDistinguishesZeroSignsAndPayloads) {
  const TensorMap expected = {{key, f32({2}, {0.0f, std::bit_cast<float>(0x7fc00001)})}};
  EXPECT_TRUE(compare(expected, expected, CompareMode::Bitwise).empty());
  auto differences =
      compare(expected, {{key, f32({2}, {-0.0f, std::bit_cast<float>(0x7fc00001)})}}, CompareMode::Bitwise);
  ASSERT_EQ(differences.size(), 1u);
  EXPECT_EQ(differences[0].differing, 1);
  EXPECT_EQ(differences[0].expected_text, "0");
  EXPECT_EQ(differences[0].actual_text, "-0");
  EXPECT_EQ(differences[0].max_abs, 0.0);
  differences = compare(expected, {{key, f32({2}, {0.0f, std::bit_cast<float>(0x7fc00002)})}}, CompareMode::Bitwise);
  ASSERT_EQ(differences.size(), 1u);
  EXPECT_EQ(differences[0].index, 1);
  EXPECT_EQ(differences[0].expected_text, "nan (0x7fc00001)");
  EXPECT_EQ(differences[0].actual_text, "nan (0x7fc00002)");
}

TEST(Compare, ValueDifferenceIsMeasured) {
  // By hand: 3 of 6 differ, by 1, 2 and 2, norm 3; the expected values have norm sqrt(1+4+4+16) = 5.
  const TensorMap expected = {{key, f32({2, 3}, {1, 2, 0, -2, 4, 0})}};
  const TensorMap actual = {{key, f32({2, 3}, {1, 2, 1, -4, 4, 2})}};
  for (const CompareMode mode : {CompareMode::Numeric, CompareMode::Bitwise}) {
    const auto differences = compare(expected, actual, mode);
    ASSERT_EQ(differences.size(), 1u);
    const Difference& d = differences[0];
    EXPECT_EQ(d.what, DifferenceKind::Value);
    EXPECT_EQ(to_string(d.key), key);
    EXPECT_EQ(d.actual_form, "f32[2,3]");
    EXPECT_EQ(d.index, 2);
    EXPECT_EQ(d.position, (std::vector<int64_t>{0, 2}));
    EXPECT_EQ(d.expected, 0.0);
    EXPECT_EQ(d.actual, 1.0);
    EXPECT_EQ(d.max_abs, 2.0);
    EXPECT_EQ(d.differing, 3);
    EXPECT_EQ(d.elements, 6);
    EXPECT_DOUBLE_EQ(d.relative_norm, 0.6);
  }
}

TEST(Compare, IntegersBeyondDoublePrecisionDiffer) {
  const int64_t large = int64_t{1} << 60;
  const TensorMap expected = {{key, i64({3, large})}};
  const TensorMap actual = {{key, i64({3, large + 1})}};
  EXPECT_TRUE(compare(expected, expected, CompareMode::Bounded).empty());
  for (const CompareMode mode : {CompareMode::Numeric, CompareMode::Bitwise, CompareMode::Bounded}) {
    const auto differences = compare(expected, actual, mode);
    ASSERT_EQ(differences.size(), 1u);
    EXPECT_EQ(differences[0].index, 1);
    EXPECT_EQ(differences[0].actual_text, "1152921504606846977");
  }
}

TEST(Compare, FormsAndKeysInCausalOrder) {
  const HostTensor one = f32({1}, {1});
  const TensorMap expected = {{"0/grad/-/-/w", one},     {"0/forward/0/1/a", one}, {"0/forward/1/0/b", one},
                              {"0/backward/1/0/x", one}, {"0/loss/1/0/l", one},    {"1/forward/0/0/a", one}};
  const TensorMap actual = {{"0/grad/-/-/w", f32({1, 1}, {1})},
                            {"0/forward/1/0/b", i64({1})},
                            {"0/backward/1/0/x", f32({1}, {2})},
                            {"0/loss/1/0/l", one},
                            {"0/partial/1/0/w", one},
                            {"1/forward/0/0/a", one}};
  std::string found;
  for (const Difference& d : compare(expected, actual, CompareMode::Numeric))
    found += to_string(d.key) + " " + std::string(difference_name(d.what)) + "; ";
  EXPECT_EQ(found,
            "0/forward/1/0/b dtype; 0/forward/0/1/a missing; 0/backward/1/0/x value; 0/partial/1/0/w unexpected; "
            "0/grad/-/-/w shape; ");
  EXPECT_THROW(compare({}, {{"w", one}}, CompareMode::Numeric), InputError);
}

class Bounded : public ::testing::Test {
 protected:
  std::vector<Difference> judge(std::vector<double> expected, std::vector<float> actual, std::vector<double> bound,
                                NormGate gate) {
    const auto size = static_cast<int64_t>(expected.size());
    Bounds bounds{{{key, make_f64({size}, bound)}}, {{key, gate}}};
    return compare({{key, make_f64({size}, expected)}}, {{key, f32({size}, actual)}}, CompareMode::Bounded, bounds);
  }
};

TEST_F(Bounded, PassesInsideAndOnTheBound) {
  EXPECT_TRUE(judge({3, 4}, {3.5f, 4.0f}, {0.5, 0.0}, {0.1, 0}).empty());  // norm 0.5 of 5 is the limit itself
}

TEST_F(Bounded, NamesTheWorstElementInUnitsOfItsBound) {
  const auto differences = judge({100, 1, 0}, {102.0f, 1.5f, 0.0f}, {1.0, 0.125, 0.0}, {1.0, 0});
  ASSERT_EQ(differences.size(), 1u);
  EXPECT_TRUE(differences[0].bounded);
  EXPECT_EQ(differences[0].what, DifferenceKind::Value);
  EXPECT_EQ(differences[0].index, 1);
  EXPECT_EQ(differences[0].max_ratio_of_bound, 4.0);
  EXPECT_EQ(differences[0].max_abs, 2.0);
  EXPECT_EQ(differences[0].differing, 2);
}

TEST_F(Bounded, TheNormGateCatchesWhatLooseBoundsAllow) {
  const auto differences = judge({3, 4}, {3.3f, 4.4f}, {1, 1}, {0.09, 0});  // each within, together 10 % off
  ASSERT_EQ(differences.size(), 1u);
  EXPECT_EQ(differences[0].what, DifferenceKind::Norm);
  EXPECT_NEAR(differences[0].relative_norm, 0.1, 1e-6);
  EXPECT_EQ(differences[0].norm_limit, 0.09);
  EXPECT_TRUE(judge({3, 4}, {3.3f, 4.4f}, {1, 1}, {0.09, 10}).empty());  // 5 % of what cancelled
}

TEST_F(Bounded, ZeroExpectedNeedsAFloor) {
  EXPECT_EQ(judge({0}, {1e-9f}, {1e-8}, {0.5, 0}).size(), 1u);
  EXPECT_TRUE(judge({0}, {1e-9f}, {1e-8}, {0.5, 1e-8}).empty());
  EXPECT_TRUE(judge({0}, {0.0f}, {0.0}, {0.0, 0}).empty());
}

TEST_F(Bounded, NothingThatIsNotFinitePasses) {
  EXPECT_EQ(judge({inf}, {std::numeric_limits<float>::infinity()}, {1}, {inf, 0}).size(), 1u);
  EXPECT_EQ(judge({1}, {std::nanf("")}, {1}, {inf, 0}).size(), 1u);
  EXPECT_EQ(judge({nan}, {1.0f}, {1}, {inf, 0}).size(), 1u);
  EXPECT_EQ(judge({1}, {1.0f}, {inf}, {1, 0}).size(), 1u);
  EXPECT_EQ(judge({1}, {1.0f}, {nan}, {1, 0}).size(), 1u);
  EXPECT_EQ(judge({1}, {1.0f}, {-1}, {1, 0}).size(), 1u);
  EXPECT_EQ(judge({1}, {1.5f}, {1}, {nan, 0}).size(), 1u);
}

TEST_F(Bounded, RefusesTruthWithoutBounds) {
  const TensorMap expected = {{key, make_f64({1}, {1})}};
  const TensorMap actual = {{key, f32({1}, {1})}};
  EXPECT_THROW(compare(expected, actual, CompareMode::Bounded), Error);
  EXPECT_THROW(compare(expected, actual, CompareMode::Bounded, {{{key, make_f64({1}, {1})}}, {}}), Error);
  EXPECT_THROW(compare(expected, actual, CompareMode::Bounded, {{{key, make_f64({2}, {1, 1})}}, {{key, {1, 0}}}}),
               Error);
  EXPECT_THROW(compare(actual, actual, CompareMode::Bounded, {{{key, make_f64({1}, {1})}}, {{key, {1, 0}}}}), Error);
}

TEST(UlpsBetween, StepsToTheNextNumber) {
  // One step of std::nextafter, across a change of exponent, the smallest normal number and zero.
  for (const double from : {1.0, 2.0, -2.0, 0x1.8p7, 0x1p-1022, -0x1p-1022, 0x1p-1074, 0.0, -0.0, 1e300}) {
    EXPECT_EQ(ulps_between("f64", from, std::nextafter(from, inf)), 1) << from;
    EXPECT_EQ(ulps_between("f64", std::nextafter(from, -inf), from), 1) << from;
  }
  for (const float from : {1.0f, 2.0f, -2.0f, 0x1p-126f, -0x1p-126f, 0x1p-149f, 0.0f, -0.0f, 1e38f}) {
    const float up = std::nextafterf(from, std::numeric_limits<float>::infinity());
    EXPECT_EQ(ulps_between("f32", from, up), 1) << from;
    EXPECT_EQ(ulps_between("f32", std::nextafterf(up, std::numeric_limits<float>::infinity()), from), 2) << from;
  }
}

TEST(UlpsBetween, ByTheBitsOfEachFormat) {
  // For positive numbers, the difference of the bit patterns; bf16 has the upper half of the bits of f32.
  for (const auto& [a, b] : std::vector<std::pair<uint32_t, uint32_t>>{
           {0x3f80, 0x3f81}, {0x3f7f, 0x4000}, {0x0000, 0x0001}, {0x0001, 0x0080}, {0x007f, 0x0080}, {0x0000, 0x7f7f}})
    EXPECT_EQ(ulps_between("bf16", std::bit_cast<float>(a << 16), std::bit_cast<float>(b << 16)), b - a);
  EXPECT_EQ(ulps_between("bf16", std::bit_cast<float>(0x80010000), std::bit_cast<float>(0x00020000)), 3);
  // f16 by hand: 1 is 0x3c00, 1 + 2^-10 0x3c01, 2 0x4000, 65504 0x7bff, 2^-14 0x0400, 2^-24 0x0001.
  EXPECT_EQ(ulps_between("f16", 1, 1 + 0x1p-10), 1);
  EXPECT_EQ(ulps_between("f16", 1, 2), 0x400);
  EXPECT_EQ(ulps_between("f16", 0, 65504), 0x7bff);
  EXPECT_EQ(ulps_between("f16", 0x1p-24, 0x1p-14), 0x3ff);
  EXPECT_EQ(ulps_between("f16", -0x1p-24, 0x1p-24), 2);
  EXPECT_EQ(ulps_between("f64", 0, 0x1p-1022), 0x1p52);
  EXPECT_EQ(ulps_between("f64", -std::numeric_limits<double>::max(), std::numeric_limits<double>::max()),
            2.0 * 0x7fefffffffffffff);
}

TEST(UlpsBetween, NothingForWhatHasNone) {
  EXPECT_EQ(ulps_between("f32", 0.0, -0.0), 0);
  EXPECT_LT(ulps_between("i64", 1, 2), 0);
  EXPECT_LT(ulps_between("f32", nan, 1), 0);
  EXPECT_LT(ulps_between("f32", 1, inf), 0);
}

TEST(FirstNan, IsThatOfALossAGradientOrAState) {
  const float none = std::nanf("");
  for (const char* of : {"0/loss/-/1/loss", "0/grad/-/-/w", "1/param/-/-/w", "1/optimizer-state/-/-/w/momentum"})
    EXPECT_EQ(first_nan({{"0/grad/-/-/b", f32({1}, {1})}, {of, f32({3}, {1, none, 2})}}), of);
  // A boundary may carry any value, and infinities are numbers that only one fault in many gives.
  EXPECT_EQ(first_nan({{"0/forward/0/0/a", f32({1}, {none})},
                       {"0/loss/-/1/loss", f32({1}, {std::numeric_limits<float>::infinity()})},
                       {"0/grad/-/-/w", f32({2}, {1, 0})}}),
            "");
}

TEST(ZeroFraction, CountsBackwardAndGradOnly) {
  const TensorMap results = {{"0/forward/0/0/a", f32({4}, {0, 0, 0, 0})},
                             {"0/backward/1/0/a", f32({3}, {0, -0.0f, 5})},
                             {"0/grad/-/-/w", f32({5}, {1, 2, 0, 4, 5})}};
  EXPECT_EQ(zero_fraction(results), 3.0 / 8.0);
  EXPECT_EQ(zero_fraction({}), 0.0);
}

}  // namespace
}  // namespace plumbline::conformance
