// Turns at the default random generator.
//
// LibTorch has one CPU generator for the whole process. Ranks that are threads would disturb each other, so whoever
// seeds it, runs something that draws, and puts it back, does so in a turn of its own.
#pragma once

#include <ATen/CPUGeneratorImpl.h>

#include <mutex>
#include <optional>

namespace plumbline {

/// One turn: optionally seeded at its begin, the generator as it was at its end. Turns of one thread must not nest.
class RandomTurn {
 public:
  explicit RandomTurn(std::optional<uint64_t> seed = std::nullopt)
      : turn_(turns()), generator_(at::detail::getDefaultCPUGenerator()) {
    const std::lock_guard<std::mutex> lock(generator_.mutex());
    before_ = generator_.get_state();
    if (seed) generator_.set_current_seed(*seed);
  }
  ~RandomTurn() {
    const std::lock_guard<std::mutex> lock(generator_.mutex());
    generator_.set_state(before_);
  }
  RandomTurn(const RandomTurn&) = delete;
  RandomTurn& operator=(const RandomTurn&) = delete;

 private:
  static std::mutex& turns() {
    static std::mutex mutex;
    return mutex;
  }
  std::lock_guard<std::mutex> turn_;
  at::Generator generator_;
  at::Tensor before_;
};

}  // namespace plumbline
