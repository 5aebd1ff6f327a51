#include "runtime/schedule/orders/looped.h"

#include <algorithm>

#include "runtime/schedule/orders/in_turn.h"
#include "runtime/schedule/orders/order.h"
#include "runtime/text/counted.h"

namespace plumbline::schedule {
namespace {

// All pairs (stage of the rank, micro-batch): each group of micro-batches through one stage after the other.
std::vector<Action> by_groups(const ScheduleRequest& request, int rank, ActionType type, int group) {
  const int locals = request.stages_per_rank;
  std::vector<Action> actions;
  for (int first = 0; first < request.microbatches; first += group) {
    const int last = first + std::min(group, request.microbatches - first);
    for (int n = 0; n < locals; ++n) {
      const int local = type == ActionType::F ? n : locals - 1 - n;
      for (int m = first; m < last; ++m) actions.push_back({local * request.ranks + rank, type, m});
    }
    if (last == request.microbatches) break;
  }
  return actions;
}

bool makes_equal_rounds(int microbatches, int ranks) { return microbatches % std::max(1, microbatches / ranks) == 0; }

// Micro-batches of a round by PyTorch's rule.
int equal_rounds(const ScheduleRequest& request) {
  const int rounds = std::max(1, request.microbatches / request.ranks);
  if (!makes_equal_rounds(request.microbatches, request.ranks)) {
    std::int64_t fewer = request.microbatches, more = request.microbatches;
    while (!makes_equal_rounds(static_cast<int>(fewer), request.ranks)) --fewer;  // ends at P
    while (more % std::max<std::int64_t>(1, more / request.ranks) != 0) ++more;   // ends at a multiple of P
    refuse(request, std::to_string(request.microbatches) + " micro-batches on " + counted(request.ranks, "rank") +
                        " make " + std::to_string(rounds) +
                        " rounds of unequal size; nearest: " + std::to_string(fewer) + ", " + std::to_string(more));
  }
  return request.microbatches / rounds;
}

// The user's group size, within Megatron-LM's limits, so that no group makes a rank wait.
int given_groups(const ScheduleRequest& request) {
  const int group = request.group_size, ranks = request.ranks, microbatches = request.microbatches;
  if (group < ranks || group > microbatches) {
    refuse(request, "group size " + std::to_string(group) + " for " + counted(ranks, "rank") + " and " +
                        counted(microbatches, "micro-batch") +
                        "; it must be at least the number of ranks and at most that of micro-batches");
  }
  const int over = microbatches % group;
  if (over != 0 && over < ranks) {
    refuse(request, counted(microbatches, "micro-batch") + " in groups of " + std::to_string(group) + " leave " +
                        std::to_string(over) + " for " + counted(ranks, "rank") +
                        "; nearest: " + std::to_string(microbatches - over) + ", " +
                        std::to_string(std::int64_t{microbatches} - over + ranks));
  }
  return group;
}

}  // namespace

Schedule interleaved_one_f_one_b(const ScheduleRequest& request) {
  const int group = request.group_size == 0 ? equal_rounds(request) : given_groups(request);
  return assemble(request, looped_placement(request), [&](int rank) {
    const std::int64_t warm_up =
        (request.stages_per_rank - std::int64_t{1}) * group + std::int64_t{2} * (request.ranks - 1 - rank);
    return in_turn(by_groups(request, rank, ActionType::F, group), by_groups(request, rank, ActionType::B, group),
                   warm_up);
  });
}

Schedule interleaved_zero_bubble(const ScheduleRequest& request) {
  const int group = equal_rounds(request);
  return assemble(request, looped_placement(request), [&](int rank) {
    const std::int64_t warm_up = (request.stages_per_rank - std::int64_t{1}) * group + (request.ranks - 1 - rank);
    return in_turn_by_halves(by_groups(request, rank, ActionType::F, group),
                             by_groups(request, rank, ActionType::B, group), warm_up, rank);
  });
}

Schedule looped_bfs(const ScheduleRequest& request) {
  return assemble(request, looped_placement(request), [&](int rank) {
    std::vector<Action> order = by_groups(request, rank, ActionType::F, request.microbatches);
    for (auto forward = order.size(); forward-- > 0;) {
      order.push_back({order[forward].stage, ActionType::B, order[forward].microbatch});
    }
    return order;
  });
}

}  // namespace plumbline::schedule
