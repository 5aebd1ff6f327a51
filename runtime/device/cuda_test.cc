// What can be said of devices where there is none.
#include "runtime/device/cuda.h"

#include <gtest/gtest.h>

#include "runtime/error.h"
#include "runtime/testing/refusal.h"

namespace plumbline::device {
namespace {

TEST(Devices, OfSeveralKindsAreRefused) {
  const std::vector<std::string> alike = {"NVIDIA H200", "NVIDIA H200"}, one = {"NVIDIA T1000"};
  require_one_kind(alike);
  require_one_kind(one);
  const std::vector<std::string> mixed = {"NVIDIA H200", "NVIDIA H200", "NVIDIA T1000"};
  EXPECT_EQ(testing::failure<Error>([&] { require_one_kind(mixed); }),
            "--device cuda: ranks would compute on NVIDIA H200 and on NVIDIA T1000, whose results differ in their last "
            "bits; CUDA_VISIBLE_DEVICES must leave devices of one kind");
}

}  // namespace
}  // namespace plumbline::device
