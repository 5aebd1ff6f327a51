// Custom functions: what a user puts in the place of the engine's own way to carry out an action, or a group of actions
// that may overlap.
//
// After PyTorch's register_custom_function (torch.distributed.pipelining.schedules): all kinds of action can be
// replaced but SEND, RECV and WAIT_SEND, and a group as a whole. What differs: a computation must be carried out in any
// case, once, by the stage's own runner or by another one; so the schedule that was checked is what is done.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <map>
#include <span>
#include <vector>

#include "runtime/engine/stage_runner.h"
#include "runtime/schedule/schedule.h"

namespace plumbline::engine {

class Engine;

/// What a custom function may ask and do while it runs.
class ActionContext {
 public:
  int rank() const;
  const schedule::Schedule& schedule() const;
  /// Within Engine::train().
  bool training() const;
  /// The model's inputs and the target of a micro-batch, as this rank was given them.
  const std::vector<at::Tensor>& inputs(int microbatch) const;
  const at::Tensor& target(int microbatch) const;
  /// By micro-batch, as far as they are known; empty on a rank without the last stage, or without a loss.
  const std::vector<at::Tensor>& losses() const;
  /// What computes for a stage of this rank.
  StageRunner& runner(int stage) const;

  /// The engine's own way. `action` is one of those that the function was given; F, B, I and W not before what they
  /// need of the same group. UNSHARD, RESHARD, REDUCE_GRAD and WAIT_REDUCE_GRAD do nothing by themselves, and need not
  /// be carried out. Throws Error for another action, or for one that was carried out already.
  void carry_out(const schedule::Action& action);
  /// The same, but `runner` computes in place of the stage's. It gets what the stage's would (the inputs, or the
  /// gradients of the outputs) and what it makes goes where the stage's would. An I and its W are for one runner.
  void carry_out(const schedule::Action& action, StageRunner& runner);

 private:
  friend class Engine;
  ActionContext(Engine& engine, std::span<const schedule::Action> actions) : engine_(engine), actions_(actions) {}

  Engine& engine_;
  std::span<const schedule::Action> actions_;
};

/// Carries out `actions`: one, or a whole group in the order of the schedule. Called on the engine's thread. What it
/// throws fails the step.
using CustomFunction = std::function<void(std::span<const schedule::Action> actions, ActionContext& context)>;

struct CustomFunctions {
  /// By kind of action: F, B, I, W, UNSHARD, RESHARD, REDUCE_GRAD, WAIT_REDUCE_GRAD. The engine refuses others.
  std::map<schedule::ActionType, CustomFunction> of_type = {};
  /// For groups. Where there is none, the members of a group are carried out one by one, each by the function of its
  /// kind.
  CustomFunction group = {};
};

}  // namespace plumbline::engine
