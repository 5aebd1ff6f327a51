// Turns at the default random generator.
//
// LibTorch has one default generator of each device for the whole process. Ranks that are threads would disturb each
// other, so code that seeds a generator, draws from it and restores it does so in a turn: a process-wide lock.
#pragma once

#include <ATen/Context.h>
#include <ATen/core/Tensor.h>

#include <mutex>
#include <optional>

#include "runtime/error.h"

namespace plumbline::graph {

/// The state of the device's default generator, in the form that RandomTurn and at::Generator::set_state() take.
inline at::Tensor random_state(c10::Device device = c10::kCPU) {
  at::Generator generator = at::globalContext().defaultGenerator(device);
  const std::lock_guard<std::mutex> lock(generator.mutex());
  return generator.get_state();
}

/// Sets what random_state() has returned.
inline void restore_random_state(const at::Tensor& state, c10::Device device = c10::kCPU) {
  at::Generator generator = at::globalContext().defaultGenerator(device);
  const std::lock_guard<std::mutex> lock(generator.mutex());
  generator.set_state(state);
}

/// One turn. The constructor blocks until no other thread has a turn, then sets the seed or the state, if given; the
/// destructor restores the generator. Turns of one thread must not nest; otherwise the process aborts.
class RandomTurn {
 public:
  explicit RandomTurn(std::optional<uint64_t> seed = std::nullopt, c10::Device device = c10::kCPU)
      : turn_(turn()), generator_(at::globalContext().defaultGenerator(device)) {
    const std::lock_guard<std::mutex> lock(generator_.mutex());
    before_ = generator_.get_state();
    if (seed) generator_.set_current_seed(*seed);
  }
  explicit RandomTurn(const at::Tensor& state, c10::Device device = c10::kCPU) : RandomTurn(std::nullopt, device) {
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
