#include "runtime/engine/step/execution.h"

#include <algorithm>
#include <ranges>

#include "runtime/clock.h"
#include "runtime/engine/step/group_order.h"
#include "runtime/text/join.h"

namespace plumbline::engine {

void Execution::run() {
  const CustomFunction& custom_group = step_.context().options.custom.group;
  try {
    while (position_ < actions_.size()) {
      const size_t end = schedule::group_end(actions_, position_);
      if (custom_group && end > position_ + 1) {
        execute_custom(custom_group, actions_.subspan(position_, end - position_));
        step_.courier().release_completed_sends();
        position_ = end;
      } else if (end > position_ + 1) {
        execute_group(end);
      } else {
        execute_one(actions_[position_]);
        step_.courier().release_completed_sends();
        ++position_;
      }
    }
  } catch (const PeerError&) {
    throw;  // names the place where it began
  } catch (...) {
    throw_with_position();
  }
}

/// The group ends before `end`.
void Execution::execute_group(size_t end) {
  position_ = for_each_of_group(actions_, position_, end, step_.buffers().sent, [&](size_t position) {
    position_ = position;
    execute_one(actions_[position]);
    step_.courier().release_completed_sends();
  });
}

void Execution::execute_one(const schedule::Action& action) {
  timed(action, [&] {
    const auto& functions = step_.context().options.custom.of_type;
    if (!functions.empty()) {
      const auto custom = functions.find(action.type);
      if (custom != functions.end() && custom->second) return execute_custom(custom->second, {&action, 1});
    }
    step_.execute(action);
  });
}

/// `actions` begin at position_.
void Execution::execute_custom(const CustomFunction& function, std::span<const schedule::Action> actions) {
  std::vector<char>& executed = step_.buffers().executed;
  executed.assign(actions.size(), false);
  ActionContext context(*this, actions);
  const size_t first = position_;
  function(actions, context);
  if (failure_) std::rethrow_exception(failure_);  // position_ is that of the action that failed
  position_ = first;
  for (size_t i = 0; i < actions.size(); ++i) {
    if (executed[i] || !schedule::is_compute(actions[i].type)) continue;
    position_ = first + i;
    throw Error("the custom function ended without executing it");
  }
}

void Execution::execute_member(std::span<const schedule::Action> given, const schedule::Action& action,
                               StageRunner* substitute) {
  if (failure_) std::rethrow_exception(failure_);
  const auto same = [&](const schedule::Action& each) {
    return each.stage == action.stage && each.type == action.type && each.microbatch == action.microbatch;
  };
  const size_t i = std::find_if(given.begin(), given.end(), same) - given.begin();
  if (i == given.size()) throw Error("the custom function asks for " + to_string(action) + ", which it was not given");
  char& executed = step_.buffers().executed[i];
  if (executed) throw Error("the custom function asks for " + to_string(action) + " a second time");
  executed = true;
  const size_t first = position_;
  position_ += i;
  try {
    // A single action is timed together with its function.
    if (given.size() > 1)
      timed(given[i], [&] { step_.execute(given[i], substitute); });
    else
      step_.execute(given[i], substitute);
  } catch (...) {
    failure_ = std::current_exception();
    throw;
  }
  position_ = first;
}

/// An action begins when its messages have arrived.
template <class Work>
void Execution::timed(const schedule::Action& action, Work&& work) {
  if (!step_.context().options.trace) return work();
  const double begin = clock_seconds();
  work();
  step_.result().trace.push_back({action, std::max(begin, step_.courier().last_arrival()), clock_seconds()});
}

/// Rethrows the current exception, of the same type if it is one of ours, with the position before its text.
void Execution::throw_with_position() const {
  const std::string rank = "rank " + std::to_string(step_.context().transport.rank());
  const auto located = [&](std::string text) {
    if (text.starts_with(rank + ": ")) text.erase(0, rank.size() + 2);
    return rank + ", position " + std::to_string(position_) + " (" + to_string(actions_[position_]) + "): " + text;
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

int ActionContext::rank() const { return execution_.step().context().transport.rank(); }
const schedule::Schedule& ActionContext::schedule() const { return execution_.step().context().schedule; }
bool ActionContext::training() const { return execution_.step().training(); }
const std::vector<at::Tensor>& ActionContext::inputs(int microbatch) const {
  return execution_.step().inputs(microbatch);
}
const microbatch::Targets& ActionContext::targets(int microbatch) const {
  return execution_.step().targets(microbatch);
}
const std::vector<at::Tensor>& ActionContext::losses() const { return execution_.step().result().losses; }
StageRunner& ActionContext::runner(int stage) const {
  const std::vector<int>& stages = execution_.step().context().stages;
  if (!std::ranges::binary_search(stages, stage))
    throw Error("a custom function requests the runner of stage " + std::to_string(stage) + ", which rank " +
                std::to_string(rank()) + " does not execute; expected one of its stages: " +
                join(stages | std::views::transform([](int s) { return std::to_string(s); })));
  return execution_.step().runner(stage);
}
void ActionContext::execute(const schedule::Action& action) { execution_.execute_member(actions_, action, nullptr); }
void ActionContext::execute(const schedule::Action& action, StageRunner& runner) {
  execution_.execute_member(actions_, action, &runner);
}

}  // namespace plumbline::engine
