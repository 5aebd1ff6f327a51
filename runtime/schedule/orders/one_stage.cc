#include "runtime/schedule/orders/one_stage.h"

#include "runtime/schedule/orders/in_turn.h"
#include "runtime/schedule/orders/order.h"
#include "runtime/text/counted.h"

namespace plumbline::schedule {
namespace {

// Micro-batches 0, 1, ... of the rank's own stage.
std::vector<Action> ascending(int rank, ActionType type, int microbatches) {
  std::vector<Action> actions;
  for (int m = 0; m < microbatches; ++m) actions.push_back({rank, type, m});
  return actions;
}

// `backwards` slices at a time in descending order, as a causal sequence requires.
std::vector<Action> descending_slices(int rank, int microbatches, int slices) {
  std::vector<Action> actions;
  for (int first = 0; first < microbatches; first += slices) {
    for (int m = first + slices - 1; m >= first; --m) actions.push_back({rank, ActionType::B, m});
  }
  return actions;
}

// `order` gets each rank and its distance from the last rank.
template <typename Order>
Schedule one_stage_each(const ScheduleRequest& request, const Order& order) {
  return assemble(request, looped_placement(request), [&](int rank) {
    return order(rank, std::int64_t{request.ranks} - 1 - rank, ascending(rank, ActionType::F, request.microbatches),
                 ascending(rank, ActionType::B, request.microbatches));
  });
}

}  // namespace

Schedule gpipe(const ScheduleRequest& request) {
  return one_stage_each(request, [&](int, std::int64_t, const auto& forwards, const auto& backwards) {
    return in_turn(forwards, backwards, request.microbatches);
  });
}

Schedule one_f_one_b(const ScheduleRequest& request) {
  return one_stage_each(request, [](int, std::int64_t hops, const auto& forwards, const auto& backwards) {
    return in_turn(forwards, backwards, hops);
  });
}

Schedule eager_one_f_one_b(const ScheduleRequest& request) {
  return one_stage_each(request, [](int, std::int64_t hops, const auto& forwards, const auto& backwards) {
    return in_turn(forwards, backwards, 2 * hops);
  });
}

Schedule zb_h1(const ScheduleRequest& request) {
  return one_stage_each(request, [](int rank, std::int64_t hops, const auto& forwards, const auto& backwards) {
    return in_turn_by_halves(forwards, backwards, hops, rank);
  });
}

Schedule zb_h2(const ScheduleRequest& request) {
  return one_stage_each(request, [](int rank, std::int64_t hops, const auto& forwards, const auto& backwards) {
    return in_turn_by_halves(forwards, backwards, 2 * hops, std::int64_t{2} * rank);
  });
}

Schedule seq_one_f_one_b(const ScheduleRequest& request) {
  const int slices = request.slices == 0 ? 2 : request.slices;
  if (slices < 1) refuse(request, std::to_string(slices) + " slices; at least 1 is needed");
  const int over = request.microbatches % slices;
  if (over != 0) {
    const int fewer = request.microbatches - over;
    refuse(request, counted(request.microbatches, "micro-batch") + " cannot be divided into sequences of " +
                        counted(slices, "slice") +
                        "; nearest: " + (fewer > 0 ? std::to_string(fewer) + ", " : std::string()) +
                        std::to_string(std::int64_t{fewer} + slices));
  }
  return one_stage_each(request, [&](int rank, std::int64_t hops, const auto& forwards, const auto&) {
    return in_turn(forwards, descending_slices(rank, request.microbatches, slices), hops - 1 + slices);
  });
}

Schedule forward_only(const ScheduleRequest& request) {
  return one_stage_each(request, [](int, std::int64_t, const auto& forwards, const auto&) { return forwards; });
}

}  // namespace plumbline::schedule
