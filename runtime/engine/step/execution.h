// Execution: executes the actions of one rank in a step, one after another or by custom functions, records the times of
// a trace, and adds the position in the list to the text of an error.
#pragma once

#include <span>

#include "runtime/engine/custom_function.h"
#include "runtime/engine/step/step.h"

namespace plumbline::engine {

class Execution {
 public:
  explicit Execution(Step& step) : step_(step), actions_(step.plan().actions) {}

  /// Executes all actions. Rethrows an error with its position: "rank 1, position 4 (1B0): ...".
  void run();

  /// For a custom function that was given `given`: executes one of them.
  void execute_member(std::span<const schedule::Action> given, const schedule::Action& action, StageRunner* substitute);

  Step& step() { return step_; }

 private:
  void execute_one(const schedule::Action& action);
  void execute_custom(const CustomFunction& function, std::span<const schedule::Action> actions);
  template <class Work>
  void timed(const schedule::Action& action, Work&& work);
  [[noreturn]] void throw_with_position() const;

  Step& step_;
  const std::span<const schedule::Action> actions_;
  size_t position_ = 0;  // of the current action
};

}  // namespace plumbline::engine
