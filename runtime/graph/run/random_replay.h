// Replay of random numbers: the state of a device's default generator before a random call is recorded in the forward,
// and set again around the same call in the backward.
//
// A state is a tensor on the CPU. For the CPU's generator it is the whole state (about 5 KB). For another device's
// generator it is i64[2]: the seed and the offset into the counter-based stream, which determine such a generator
// (Philox).
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <mutex>
#include <optional>

#include "runtime/graph/run/random_turn.h"

namespace plumbline::graph {

/// Returns the current state of the default generator of `device`.
at::Tensor recorded_random_state(c10::Device device);

/// During its lifetime the default generator of `device` continues from `state`; the destructor restores the generator.
/// On the CPU a RandomReplay is a RandomTurn and must not be inside another turn; elsewhere it takes no turn.
class RandomReplay {
 public:
  RandomReplay(c10::Device device, const at::Tensor& state);
  ~RandomReplay();
  RandomReplay(const RandomReplay&) = delete;
  RandomReplay& operator=(const RandomReplay&) = delete;

 private:
  std::optional<RandomTurn> turn_;  // on the CPU
  at::Generator generator_;         // elsewhere
  at::Tensor before_;
};

}  // namespace plumbline::graph
