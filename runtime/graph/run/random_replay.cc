#include "runtime/graph/run/random_replay.h"

#include <ATen/Context.h>
#include <ATen/ops/empty.h>

namespace plumbline::graph {
namespace {

at::Tensor seed_and_offset(at::Generator& generator) {
  const std::lock_guard<std::mutex> lock(generator.mutex());
  at::Tensor state = at::empty({2}, at::kLong);
  state.mutable_data_ptr<int64_t>()[0] = static_cast<int64_t>(generator.current_seed());
  state.mutable_data_ptr<int64_t>()[1] = static_cast<int64_t>(generator.get_offset());
  return state;
}

void set_seed_and_offset(at::Generator& generator, const at::Tensor& state) {
  const std::lock_guard<std::mutex> lock(generator.mutex());
  generator.set_current_seed(static_cast<uint64_t>(state.const_data_ptr<int64_t>()[0]));
  generator.set_offset(static_cast<uint64_t>(state.const_data_ptr<int64_t>()[1]));
}

}  // namespace

at::Tensor recorded_random_state(c10::Device device) {
  if (device.is_cpu()) return random_state();
  at::Generator generator = at::globalContext().defaultGenerator(device);
  return seed_and_offset(generator);
}

RandomReplay::RandomReplay(c10::Device device, const at::Tensor& state) {
  if (device.is_cpu()) {
    turn_.emplace(state);
    return;
  }
  generator_ = at::globalContext().defaultGenerator(device);
  before_ = seed_and_offset(generator_);
  set_seed_and_offset(generator_, state);
}

RandomReplay::~RandomReplay() {
  if (before_.defined()) set_seed_and_offset(generator_, before_);
}

}  // namespace plumbline::graph
