// LibTorch's half and bfloat16, the compiler's float and double are the oracle.
#include "runtime/types/float_bits.h"

#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <random>

namespace plumbline::types {
namespace {

const DtypeInfo& format_of(Dtype dtype) { return *std::ranges::find(dtypes(), dtype, &DtypeInfo::dtype); }

template <class Number>
void expect_every_number(Dtype dtype) {
  const DtypeInfo& format = format_of(dtype);
  for (uint32_t bits = 0; bits <= 0xffff; ++bits) {
    const double expected = static_cast<float>(Number(static_cast<uint16_t>(bits), Number::from_bits()));
    const double value = value_of_bits(bits, format);
    if (std::isnan(expected)) {
      EXPECT_TRUE(std::isnan(value)) << bits;
      EXPECT_TRUE(std::isnan(value_of_bits(nearest_bits(value, format), format))) << bits;
      continue;
    }
    EXPECT_EQ(std::bit_cast<uint64_t>(value), std::bit_cast<uint64_t>(expected)) << bits;
    EXPECT_EQ(nearest_bits(value, format), bits);
  }
}

/// Numbers of every size, their neighbours, and those half-way between two numbers of 8 or 11 digits.
std::vector<float> floats() {
  constexpr uint32_t kSeed = 20261129;
  std::mt19937 random(kSeed);
  std::vector<float> all = {0.0f, std::numeric_limits<float>::infinity(), std::numeric_limits<float>::max()};
  for (int i = 0; i < 20000; ++i) {
    const auto bits = static_cast<uint32_t>(random());
    for (const uint32_t near : {bits, (bits & ~0xffffu) | 0x8000u, (bits & ~0x1fffu) | 0x1000u})
      for (const uint32_t step : {near - 1, near, near + 1})
        if (const float value = std::bit_cast<float>(step); !std::isnan(value)) all.push_back(value);
  }
  return all;
}

TEST(FloatBits, EveryHalfAndBfloat16HasItsBits) {
  expect_every_number<c10::Half>(Dtype::Float16);
  expect_every_number<c10::BFloat16>(Dtype::BFloat16);
}

TEST(FloatBits, RoundsLikeLibTorchAndTheCompiler) {
  for (const float value : floats())
    for (const float signed_value : {value, -value}) {
      EXPECT_EQ(nearest_bits(signed_value, format_of(Dtype::Float16)), c10::Half(signed_value).x) << value;
      EXPECT_EQ(nearest_bits(signed_value, format_of(Dtype::BFloat16)), c10::BFloat16(signed_value).x) << value;
      EXPECT_EQ(nearest_bits(signed_value, format_of(Dtype::Float32)), std::bit_cast<uint32_t>(signed_value));
      // Half-way between two floats and beside it: doubles with three more digits.
      for (const double factor : {1.0, 1 + 0x1p-25, 1 + 0x1p-24, 1 + 0x1.8p-24, 1 - 0x1p-25}) {
        const double number = signed_value * factor;
        EXPECT_EQ(nearest_bits(number, format_of(Dtype::Float32)), std::bit_cast<uint32_t>(static_cast<float>(number)))
            << number;
        EXPECT_EQ(nearest_bits(number, format_of(Dtype::Float64)), std::bit_cast<uint64_t>(number)) << number;
        EXPECT_EQ(value_of_bits(std::bit_cast<uint64_t>(number), format_of(Dtype::Float64)), number);
      }
    }
}

TEST(FloatBits, StepsCountTheNumbersBetween) {
  for (const double from : {0.0, 1.0, -1.0, 0x1p-1022, 0x1p-1074, -0x1.8p10}) {
    const int64_t steps = steps_from_zero(from, format_of(Dtype::Float64));
    const double next = std::nextafter(from, std::numeric_limits<double>::infinity());
    EXPECT_EQ(steps_from_zero(next, format_of(Dtype::Float64)), steps + 1) << from;
  }
  EXPECT_EQ(steps_from_zero(-0.0, format_of(Dtype::Float32)), 0);
  EXPECT_EQ(steps_from_zero(-0x1p-24, format_of(Dtype::Float16)), -1);
}

}  // namespace
}  // namespace plumbline::types
