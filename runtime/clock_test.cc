#include "runtime/clock.h"

#include <gtest/gtest.h>

#include <cmath>

namespace plumbline {
namespace {

using namespace std::chrono_literals;

TEST(Clock, CountsSeconds) {
  const auto before = std::chrono::steady_clock::now();
  const double time = clock_seconds();
  const auto after = std::chrono::steady_clock::now();
  const auto between = std::chrono::steady_clock::time_point(std::chrono::nanoseconds(std::llround(time * 1e9)));
  EXPECT_GE(between, before - 1us);  // a double has fewer digits than the clock
  EXPECT_LE(between, after + 1us);
  EXPECT_GE(seconds_since(before - 1h), 3600);
  EXPECT_LE(seconds_since(before + 1h), seconds_since(before) - 3599);
}

TEST(Clock, CountsTheTimeOfProcessors) {
  const double thread = processor_seconds(CLOCK_THREAD_CPUTIME_ID);
  EXPECT_LE(thread, processor_seconds(CLOCK_PROCESS_CPUTIME_ID));
  while (processor_seconds(CLOCK_THREAD_CPUTIME_ID) < thread + 1e-3) {
  }
  EXPECT_GE(processor_seconds(CLOCK_PROCESS_CPUTIME_ID), thread + 1e-3);
}

}  // namespace
}  // namespace plumbline
