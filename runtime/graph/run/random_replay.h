// Drawing the same random numbers again: the state of a device's default generator before a random call, recorded in
// the forward, and put back around the same call in the backward.
//
// A state is a tensor on the CPU: of the CPU's generator its whole state (about 5 KB), of any other device's the seed
// and the offset into its counter-based stream, which is what such a generator (Philox) consists of.
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <mutex>
#include <optional>

#include "runtime/graph/run/random_turn.h"

namespace plumbline::graph {

/// The state of `device`'s default generator.
at::Tensor recorded_random_state(c10::Device device);

/// While it lives, the default generator of `device` goes on from `state`; afterwards it is as it was before. On the
/// CPU that is a RandomTurn, which must not lie in another one.
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
