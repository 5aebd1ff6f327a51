#include "bench/history/steady_probe.h"

#include <algorithm>
#include <chrono>

#include "runtime/clock.h"

namespace plumbline::bench {
namespace {

constexpr int64_t kOfTheProbe = 4'000'000;

}  // namespace

void multiply(int64_t multiplications) {
  uint64_t value = 1;
  for (int64_t i = 0; i < multiplications; ++i) {
    value = value * 6364136223846793005u + 1442695040888963407u;
    asm volatile("" : "+r"(value));
  }
}

void probe_machine(int times, std::vector<double>& seconds) {
  for (int i = 0; i < times; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    multiply(kOfTheProbe);
    seconds.push_back(seconds_since(begin));
  }
}

double multiplications_per_second() {
  std::vector<double> seconds;
  probe_machine(20, seconds);
  return static_cast<double>(kOfTheProbe) / *std::ranges::min_element(seconds);
}

}  // namespace plumbline::bench
