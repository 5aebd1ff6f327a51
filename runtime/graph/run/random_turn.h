// Turns at the default random generator.
//
// LibTorch has one CPU generator for the whole process. Ranks that are threads would disturb each other, so whoever
// seeds it, runs something that draws, and puts it back, does so in a turn of its own.
#pragma once

#include <ATen/CPUGeneratorImpl.h>

#include <mutex>
#include <optional>

#include "runtime/error.h"

namespace plumbline::graph {

/// The state of the default generator, as RandomTurn and at::Generator::set_state() take it.
inline at::Tensor random_state() {
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  const std::lock_guard<std::mutex> lock(generator.mutex());
  return generator.get_state();
}

/// One turn: optionally seeded at its begin, or begun from a state; the generator as it was at its end. Turns of one
/// thread must not nest.
class RandomTurn {
 public:
  explicit RandomTurn(std::optional<uint64_t> seed = std::nullopt)
      : turn_(turn()), generator_(at::detail::getDefaultCPUGenerator()) {
    const std::lock_guard<std::mutex> lock(generator_.mutex());
    before_ = generator_.get_state();
    if (seed) generator_.set_current_seed(*seed);
  }
  explicit RandomTurn(const at::Tensor& state) : RandomTurn() {
    const std::lock_guard<std::mutex> lock(generator_.mutex());
    generator_.set_state(state);
  }
  ~RandomTurn() {
    const std::lock_guard<std::mutex> lock(generator_.mutex());
    generator_.set_state(before_);
    in_turn = false;
  }
  RandomTurn(const RandomTurn&) = delete;
  RandomTurn& operator=(const RandomTurn&) = delete;

 private:
  static std::unique_lock<std::mutex> turn() {
    static std::mutex mutex;
    PLUMBLINE_CHECK(!in_turn,
                    "a turn at the random generator inside another on one thread, which would wait for itself");
    std::unique_lock<std::mutex> lock(mutex);
    in_turn = true;
    return lock;
  }
  static inline thread_local bool in_turn = false;

  std::unique_lock<std::mutex> turn_;
  at::Generator generator_;
  at::Tensor before_;
};

}  // namespace plumbline::graph
