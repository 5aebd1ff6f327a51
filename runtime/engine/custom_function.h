// Custom functions: a user's replacement for the engine's execution of an action, or of a group of actions that may
// overlap.
//
// After PyTorch's register_custom_function (torch.distributed.pipelining.schedules): every kind of action can be
// replaced except SEND, RECV and WAIT_SEND, and a group as a whole. Unlike there, every computation must be executed
// exactly once, by the stage's own runner or by another one, so the validated schedule is the one executed.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <map>
#include <span>
#include <vector>

#include "runtime/engine/stage/stage_runner.h"
#include "runtime/schedule/schedule.h"

namespace plumbline::engine {

class Execution;

/// The queries and operations available to a running custom function.
class ActionContext {
 public:
  ActionContext(Execution& execution, std::span<const schedule::Action> actions)
      : execution_(execution), actions_(actions) {}

  int rank() const;
  const schedule::Schedule& schedule() const;
  /// True within Engine::train().
  bool training() const;
  /// The model's inputs and the target of a micro-batch, as given to this rank.
  const std::vector<at::Tensor>& inputs(int microbatch) const;
  const at::Tensor& target(int microbatch) const;
  /// By micro-batch, those known so far; empty on a rank without the last stage, or without a loss.
  const std::vector<at::Tensor>& losses() const;
  /// The runner of a stage of this rank.
  StageRunner& runner(int stage) const;

  /// Executes an action as the engine does. `action` is one of the function's actions; F, B, I and W must follow the
  /// actions of the same group that they depend on. UNSHARD, RESHARD, REDUCE_GRAD and WAIT_REDUCE_GRAD have no default
  /// effect, and need not be executed. Throws Error for another action, or for one already executed.
  void execute(const schedule::Action& action);
  /// The same, but `runner` computes in place of the stage's runner: it gets the same inputs or gradients, and its
  /// results are used like the stage's. An I and its W must use one runner.
  void execute(const schedule::Action& action, StageRunner& runner);

 private:
  Execution& execution_;
  std::span<const schedule::Action> actions_;
};

/// Executes `actions`: one, or a whole group in the order of the schedule. Called on the engine's thread. Its exception
/// fails the step.
using CustomFunction = std::function<void(std::span<const schedule::Action> actions, ActionContext& context)>;

struct CustomFunctions {
  /// By kind of action: F, B, I, W, UNSHARD, RESHARD, REDUCE_GRAD, WAIT_REDUCE_GRAD. The engine refuses others.
  std::map<schedule::ActionType, CustomFunction> of_type = {};
  /// For groups. Without it the members of a group are executed one by one, each by the function of its kind.
  CustomFunction group = {};
};

}  // namespace plumbline::engine
