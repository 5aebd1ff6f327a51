// What the parts of Engine (engine.cc, engine_backward.cc) share: the state of a micro-batch and of a mode.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/engine/engine.h"
#include "runtime/error.h"
#include "runtime/graph/error_text.h"

namespace plumbline::engine {

/// Seconds on the steady clock.
inline double now() { return std::chrono::duration<double>(transport::Clock::now().time_since_epoch()).count(); }

/// Adds the time of its scope to a sum.
class Stopwatch {
 public:
  explicit Stopwatch(double& sum) : sum_(sum), begin_(now()) {}
  ~Stopwatch() { sum_ += now() - begin_; }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

 private:
  double& sum_;
  double begin_;
};

inline std::string place(int stage, int microbatch) {
  return "stage " + std::to_string(stage) + ", micro-batch " + std::to_string(microbatch);
}

/// One micro-batch in one of this rank's stages, from its forward to the end of its backward.
struct Engine::Flight {
  std::vector<at::Tensor> inputs;        // by graph input
  std::vector<Arrival> arriving_inputs;  // by graph input
  std::vector<at::Tensor> outputs;       // by graph output; without memory once released
  std::vector<int> takers;               // by graph output: how many have yet to take it
  std::vector<Arrival> arriving_grads;   // by outgoing channel
  std::vector<at::Tensor> input_grads;   // by graph input
  at::Tensor loss;
  /// What the I left to the W; empty where there is nothing to do.
  std::function<void()> weight_half;
};

/// What stays from step to step for one mode (training or not) and one list of micro-batch shapes.
struct Engine::Mode {
  Plan plan;
  std::vector<schedule::Action> actions;
  std::map<int, std::unique_ptr<StageRunner>> runners;
  bool backward = false;
  /// By replica, stage and graph output: its consumers on this rank, and one more for all that are on others.
  std::vector<std::vector<std::vector<int>>> takers;
  std::vector<ParameterCopies> copies;
};

/// Lets the runner of `stage` work: the time counts as busy, and an error says where it happened.
template <class Work>
void Engine::compute(int stage, int microbatch, Work&& work) {
  const Stopwatch busy(result_.times.busy);
  try {
    work(substitute_ ? *substitute_ : *mode_->runners.at(stage));
  } catch (const InputError&) {
    throw;
  } catch (const std::exception& error) {
    throw Error(place(stage, microbatch) + ": " + graph::error_text(error));
  }
}

}  // namespace plumbline::engine
