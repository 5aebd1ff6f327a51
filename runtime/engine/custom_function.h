// Custom functions: a user's code in place of the engine's execution of an action, or of a group of actions that may
// overlap.
//
// After PyTorch's register_custom_function (torch.distributed.pipelining.schedules): a function can replace every kind
// of action except SEND, RECV, WAIT_SEND, OFFLOAD and RELOAD, or a group as a whole. Unlike there, every computation
// must be executed exactly once, by the stage's own runner or by another runner, so the engine executes the schedule
// that was validated.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <map>
#include <span>
#include <vector>

#include "runtime/engine/stage/stage_runner.h"
#include "runtime/microbatch/targets.h"
#include "runtime/schedule/schedule.h"

namespace plumbline::engine {

class Execution;

/// The queries and operations available to a running custom function; valid only during its call.
class ActionContext {
 public:
  ActionContext(Execution& execution, std::span<const schedule::Action> actions)
      : execution_(execution), actions_(actions) {}

  int rank() const;
  const schedule::Schedule& schedule() const;
  /// True within Engine::train().
  bool training() const;
  /// The model's inputs of a micro-batch, as given to this rank.
  const std::vector<at::Tensor>& inputs(int microbatch) const;
  /// The targets of a micro-batch.
  const microbatch::Targets& targets(int microbatch) const;
  /// Indexed by micro-batch, undefined until computed; empty on a rank without the last stage, or without a loss
  /// function.
  const std::vector<at::Tensor>& losses() const;
  /// The runner of a stage of this rank. Throws Error for another stage.
  StageRunner& runner(int stage) const;

  /// Executes an action as the engine does. F, B, I and W must follow the actions of the same group on which they
  /// depend. UNSHARD, RESHARD, REDUCE_GRAD and WAIT_REDUCE_GRAD need not be executed; a stage whose RESHARD was
  /// executed and whose UNSHARD was not cannot compute. Throws Error if `action` is not one of the function's actions
  /// or was already executed. Errors of the action propagate, and the step fails with the first of them even if the
  /// function catches it; no further action can then be executed.
  void execute(const schedule::Action& action);
  /// The same, but `runner` computes in place of the stage's runner, from the same inputs or gradients, and the engine
  /// uses its results. An I and its W must use the same runner.
  void execute(const schedule::Action& action, StageRunner& runner);

 private:
  Execution& execution_;
  std::span<const schedule::Action> actions_;
};

/// Executes `actions`: a single action, or a whole group in the order of the schedule. Called on the engine's thread.
/// The step fails if the function throws, or returns without having executed every F, B, I and W among `actions`.
using CustomFunction = std::function<void(std::span<const schedule::Action> actions, ActionContext& context)>;

/// The custom functions of an engine.
struct CustomFunctions {
  /// By kind of action: F, B, I, W, UNSHARD, RESHARD, REDUCE_GRAD, WAIT_REDUCE_GRAD. The engine's constructor throws
  /// InputError for another kind. An empty function is ignored.
  std::map<schedule::ActionType, CustomFunction> of_type = {};
  /// For groups. If empty, the actions of a group are executed one by one, each by the function of its kind.
  CustomFunction group = {};
};

}  // namespace plumbline::engine
