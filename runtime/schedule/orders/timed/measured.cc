#include "runtime/schedule/orders/timed/measured.h"

#include <algorithm>
#include <cmath>
#include <sstream>

#include "runtime/schedule/orders/order.h"

namespace plumbline::schedule {
namespace {

std::string text_of(double number) {
  std::ostringstream text;
  text << number;
  return text.str();
}

}  // namespace

Durations measured_durations(const ScheduleRequest& request) {
  const Durations durations = request.durations.value_or(Durations{});
  const auto require = [&](double time, const char* what, bool above_zero) {
    if (std::isfinite(time) && (above_zero ? time > 0 : time >= 0)) return;
    refuse(request, std::string(what) + " takes " + text_of(time) + "; a finite time " +
                        (above_zero ? "above 0" : "not below 0") + " is needed");
  };
  require(durations.forward, "a forward", true);
  require(durations.input, "an input backward", false);
  require(durations.weight, "a weight backward", false);
  if (durations.backward) require(*durations.backward, "a full backward", false);
  require(durations.comm, "a transfer", false);
  return durations;
}

double measured_limit(const ScheduleRequest& request) {
  if (request.memory_limit == 0) return request.ranks;
  if (!std::isfinite(request.memory_limit) || request.memory_limit < 1) {
    refuse(request, "a memory limit of " + text_of(request.memory_limit) + " micro-batches; at least 1 is needed");
  }
  return request.memory_limit;
}

double kept_for_weights(const ScheduleRequest& request) {
  const double kept = request.weight_memory.value_or(0.5);
  if (!(kept >= 0 && kept <= 1)) {
    refuse(request, "a share of " + text_of(kept) + " of the activations kept for W; one from 0 to 1 is needed");
  }
  return kept;
}

double peak_activations(const Schedule& schedule, double kept) {
  double peak = 0;
  for (const auto& actions : schedule.ranks) {
    // Integer counts, so that no sum of fractions drifts: activations between F and I, and between I and W.
    int open = 0, waiting = 0;
    for (const Action& action : actions) {
      if (action.type == ActionType::F) ++open;
      if (action.type == ActionType::B || action.type == ActionType::I) --open;
      if (action.type == ActionType::I) ++waiting;
      if (action.type == ActionType::W) --waiting;
      peak = std::max(peak, open + kept * waiting);
    }
  }
  return peak;
}

bool has_room(double activations, double limit) { return activations + 1 <= limit * (1 + 1e-12); }

}  // namespace plumbline::schedule
