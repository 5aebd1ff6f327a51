#include "bench/history/steady_probe.h"

#include <chrono>
#include <cstdint>

namespace plumbline::bench {

void probe_machine(int times, std::vector<double>& seconds) {
  constexpr int kMultiplications = 4'000'000;
  for (int i = 0; i < times; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    uint64_t value = 1;
    for (int k = 0; k < kMultiplications; ++k) {
      value = value * 6364136223846793005u + 1442695040888963407u;
      asm volatile("" : "+r"(value));
    }
    seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
}

}  // namespace plumbline::bench
