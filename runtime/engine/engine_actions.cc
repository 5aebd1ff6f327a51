// How Engine goes through a rank's list: one action after another, groups, custom functions, times, and where in the
// list something failed.
#include <algorithm>

#include "runtime/engine/engine_state.h"

namespace plumbline::engine {

void Engine::refuse_custom_transfers() const {
  for (const auto& [type, function] : options_.custom.of_type)
    if (schedule::is_send(type) || schedule::is_receive(type) || schedule::is_wait_send(type))
      throw InputError("engine: " + std::string(to_string(type)) +
                       " cannot be replaced by a custom function; F, B, I, W, UNSHARD, RESHARD, REDUCE_GRAD, "
                       "WAIT_REDUCE_GRAD and groups can");
}

void Engine::carry_out_all() {
  const std::span<const schedule::Action> actions = mode_->actions;
  try {
    for (position_ = 0; position_ < actions.size();) {
      const size_t end = schedule::group_end(actions, position_);
      if (options_.custom.group && end > position_ + 1) {
        carry_out_custom(options_.custom.group, actions.subspan(position_, end - position_));
        release_completed_sends();
        position_ = end;
      }
      for (; position_ < end; ++position_) {
        carry_out_one(actions[position_]);
        release_completed_sends();
      }
    }
  } catch (const PeerError&) {
    throw;  // names the place where it began
  } catch (...) {
    fail_at_position();
  }
}

void Engine::carry_out_one(const schedule::Action& action) {
  timed(action, [&] {
    substitute_ = nullptr;
    if (!options_.custom.of_type.empty()) {
      const auto custom = options_.custom.of_type.find(action.type);
      if (custom != options_.custom.of_type.end() && custom->second)
        return carry_out_custom(custom->second, {&action, 1});
    }
    carry_out(action);
  });
}

void Engine::carry_out(const schedule::Action& action) {
  switch (action.type) {
    case schedule::ActionType::RECV_F:
      return receive_forward(action.stage, action.microbatch);
    case schedule::ActionType::F:
      return forward(action.stage, action.microbatch);
    case schedule::ActionType::SEND_F:
      return send_forward(action.stage, action.microbatch);
    case schedule::ActionType::RECV_B:
      return receive_backward(action.stage, action.microbatch);
    case schedule::ActionType::B:
      return backward(action.stage, action.microbatch);
    case schedule::ActionType::SEND_B:
      return send_backward(action.stage, action.microbatch);
    case schedule::ActionType::I:
      return backward_input(action.stage, action.microbatch);
    case schedule::ActionType::W:
      return backward_weight(action.stage, action.microbatch);
    case schedule::ActionType::WAIT_SEND_F:
    case schedule::ActionType::WAIT_SEND_B:
      return wait_send(action);
    case schedule::ActionType::UNSHARD:
    case schedule::ActionType::RESHARD:
    case schedule::ActionType::REDUCE_GRAD:
    case schedule::ActionType::WAIT_REDUCE_GRAD:
      return;  // nothing is divided over a data-parallel group
  }
}

/// `actions` begin at position_.
void Engine::carry_out_custom(const CustomFunction& function, std::span<const schedule::Action> actions) {
  carried_out_.assign(actions.size(), false);
  ActionContext context(*this, actions);
  const size_t first = position_;
  function(actions, context);
  position_ = first;
  for (size_t i = 0; i < actions.size(); ++i) {
    if (carried_out_[i] || !schedule::is_compute(actions[i].type)) continue;
    position_ = first + i;
    throw Error("the custom function came to its end without having it carried out");
  }
}

/// For a custom function that was given `actions`.
void Engine::carry_out_within(std::span<const schedule::Action> actions, const schedule::Action& action,
                              StageRunner* substitute) {
  const auto same = [&](const schedule::Action& given) {
    return given.stage == action.stage && given.type == action.type && given.microbatch == action.microbatch;
  };
  const size_t i = std::find_if(actions.begin(), actions.end(), same) - actions.begin();
  if (i == actions.size())
    throw Error("the custom function asks for " + to_string(action) + ", which it was not given");
  if (carried_out_[i]) throw Error("the custom function asks for " + to_string(action) + " a second time");
  carried_out_[i] = true;
  const size_t first = position_;
  position_ += i;
  substitute_ = substitute;
  // One that stands alone is timed with the function around it.
  if (actions.size() > 1)
    timed(actions[i], [&] { carry_out(actions[i]); });
  else
    carry_out(actions[i]);
  substitute_ = nullptr;
  position_ = first;
}

template <class Work>
void Engine::timed(const schedule::Action& action, Work&& work) {
  if (!options_.trace) return work();
  action_begin_ = now();
  work();
  result_.trace.push_back({action, action_begin_, now()});
}

/// The exception under way, of the same type where it is one of ours, with the place put before its text.
void Engine::fail_at_position() const {
  const std::string rank = "rank " + std::to_string(transport_.rank());
  const auto located = [&](std::string text) {
    if (text.starts_with(rank + ": ")) text.erase(0, rank.size() + 2);
    return rank + ", position " + std::to_string(position_) + " (" + to_string(mode_->actions[position_]) +
           "): " + text;
  };
  try {
    throw;
  } catch (const InputError& error) {
    throw InputError(located(error.what()));
  } catch (const TimeoutError& error) {
    throw TimeoutError(located(error.what()));
  } catch (const std::exception& error) {
    throw Error(located(graph::error_text(error)));
  } catch (...) {
    throw Error(located("an exception that is not a std::exception"));
  }
}

int ActionContext::rank() const { return engine_.transport_.rank(); }
const schedule::Schedule& ActionContext::schedule() const { return engine_.schedule_; }
bool ActionContext::training() const { return engine_.training_; }
const std::vector<at::Tensor>& ActionContext::inputs(int microbatch) const {
  return engine_.batch_.inputs.at(microbatch);
}
const at::Tensor& ActionContext::target(int microbatch) const { return engine_.batch_.targets.at(microbatch); }
const std::vector<at::Tensor>& ActionContext::losses() const { return engine_.result_.losses; }
StageRunner& ActionContext::runner(int stage) const { return *engine_.mode_->runners.at(stage); }
void ActionContext::carry_out(const schedule::Action& action) { engine_.carry_out_within(actions_, action, nullptr); }
void ActionContext::carry_out(const schedule::Action& action, StageRunner& runner) {
  engine_.carry_out_within(actions_, action, &runner);
}

}  // namespace plumbline::engine
