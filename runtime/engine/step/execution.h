// Execution: executes the actions of one rank in a step, one after another or by custom functions. It also records the
// times of a trace and adds the position in the list to the text of an error.
#pragma once

#include <exception>
#include <span>

#include "runtime/engine/custom_function.h"
#include "runtime/engine/step/step.h"

namespace plumbline::engine {

class Execution {
 public:
  /// `step` must outlive this object.
  explicit Execution(Step& step) : step_(step), actions_(step.plan().actions) {}

  /// Executes all actions. Rethrows an InputError, TimeoutError or PeerError with its type and any other exception as
  /// Error; the text, except a PeerError's, begins with the position: "rank 1, position 4 (1B0): ...".
  void run();

  /// For a custom function called with the actions `given`: executes `action`, with `substitute` (if not null) in place
  /// of the stage's runner. Throws Error if `action` is not in `given` or was already executed. After a failure every
  /// further call rethrows it.
  void execute_member(std::span<const schedule::Action> given, const schedule::Action& action, StageRunner* substitute);

  Step& step() { return step_; }

 private:
  void execute_one(const schedule::Action& action);
  void execute_group(size_t end);
  void execute_custom(const CustomFunction& function, std::span<const schedule::Action> actions);
  template <class Work>
  void timed(const schedule::Action& action, Work&& work);
  [[noreturn]] void throw_with_position() const;

  Step& step_;
  const std::span<const schedule::Action> actions_;
  size_t position_ = 0;         // index of the current action
  std::exception_ptr failure_;  // of an action that a custom function executed; it may catch it, the step fails anyway
};

}  // namespace plumbline::engine
