// Mutants in the order of actions. Those that make the schedule invalid must be refused; the others execute a different
// order from the one that the oracle assumes.
#include <algorithm>

#include "conformance/mutants/mutants.h"

namespace plumbline::conformance {
namespace {

/// Changes a schedule; returns whether it did.
using ScheduleChange = std::function<bool(const FaultSite& site, schedule::Schedule& schedule)>;

Mutant order(std::string name, std::string what, ScheduleChange change, std::vector<Need> needs = {need::training},
             int least_ranks = 1) {
  return {std::move(name), std::move(what),
          [change = std::move(change)](const FaultSite& site) {
            Fault fault;
            fault.schedule = [site, change](schedule::Schedule& schedule) {
              if (change(site, schedule)) site.happens();
            };
            return fault;
          },
          std::move(needs), least_ranks};
}

/// Whether micro-batches a and b go through the same replica.
bool alike(const schedule::Schedule& schedule, int a, int b) {
  return schedule.replica_of_microbatch.empty() ||
         schedule.replica_of_microbatch[a] == schedule.replica_of_microbatch[b];
}

/// Exchanges micro-batches a and b in the actions that `which` selects.
template <class Which>
bool exchange(schedule::Schedule& schedule, int a, int b, Which which) {
  if (b >= schedule.microbatches || !alike(schedule, a, b)) return false;
  for (std::vector<schedule::Action>& actions : schedule.ranks)
    for (schedule::Action& action : actions)
      if (schedule::has_microbatch(action.type) && which(action) && (action.microbatch == a || action.microbatch == b))
        action.microbatch = action.microbatch == a ? b : a;
  return true;
}

bool is_last_half(const schedule::Action& action) {
  return action.type == schedule::ActionType::B || action.type == schedule::ActionType::W;
}

/// Erases the first action of `rank` that `which` selects.
template <class Which>
bool erase(schedule::Schedule& schedule, int rank, Which which) {
  std::vector<schedule::Action>& actions = schedule.ranks[rank];
  const auto it = std::find_if(actions.begin(), actions.end(), which);
  if (it == actions.end()) return false;
  actions.erase(it);
  return true;
}

}  // namespace

std::vector<Mutant> mutants_in_the_schedule() {
  return {
      order("microbatches-in-another-order", "Every rank executes micro-batch 1 before micro-batch 0.",
            [](const FaultSite&, schedule::Schedule& schedule) {
              return exchange(schedule, 0, 1, [](const schedule::Action&) { return true; });
            },
            {need::training, need::several_microbatches}),
      order("backwards-in-another-order", "The backwards of micro-batches 0 and 1 are executed in reverse order.",
            [](const FaultSite&, schedule::Schedule& schedule) {
              return exchange(schedule, 0, 1,
                              [](const schedule::Action& action) { return action.type != schedule::ActionType::F; });
            },
            {need::training, need::several_microbatches}),
      order("forwards-in-another-order", "The forwards of micro-batches 0 and 1 are executed in reverse order.",
            [](const FaultSite&, schedule::Schedule& schedule) {
              return exchange(schedule, 0, 1,
                              [](const schedule::Action& action) { return action.type == schedule::ActionType::F; });
            },
            {need::several_microbatches, need::buffers}),
      order("weight-halves-exchanged", "Two consecutive weight halves of a stage are exchanged.",
            [](const FaultSite&, schedule::Schedule& schedule) {
              bool any = false;
              for (std::vector<schedule::Action>& actions : schedule.ranks)
                for (size_t i = 1; i < actions.size(); ++i) {
                  if (actions[i].type != schedule::ActionType::W || actions[i - 1].type != schedule::ActionType::W ||
                      actions[i].stage != actions[i - 1].stage || actions[i - 1].overlaps_next ||
                      actions[i].overlaps_next)
                    continue;
                  std::swap(actions[i], actions[i - 1]);
                  any = true;
                  ++i;
                }
              return any;
            },
            {need::halves}),
      order("one-microbatch-less", "The batch is divided into one micro-batch too few.",
            [](const FaultSite&, schedule::Schedule& schedule) {
              const int last = --schedule.microbatches;
              for (std::vector<schedule::Action>& actions : schedule.ranks)
                std::erase_if(actions, [&](const schedule::Action& action) { return action.microbatch == last; });
              if (!schedule.replica_of_microbatch.empty()) schedule.replica_of_microbatch.pop_back();
              return true;
            },
            {need::several_microbatches}),
      order("forward-left-out", "The first rank leaves out its first forward.",
            [](const FaultSite&, schedule::Schedule& schedule) {
              return erase(schedule, 0,
                           [](const schedule::Action& action) { return action.type == schedule::ActionType::F; });
            },
            {}),
      order("backward-left-out", "The first rank leaves out a backward.",
            [](const FaultSite&, schedule::Schedule& schedule) { return erase(schedule, 0, is_last_half); }),
      order("forward-done-twice", "The first rank executes its first forward twice.",
            [](const FaultSite&, schedule::Schedule& schedule) {
              std::vector<schedule::Action>& actions = schedule.ranks.front();
              const auto it = std::find_if(actions.begin(), actions.end(), [](const schedule::Action& action) {
                return action.type == schedule::ActionType::F;
              });
              if (it == actions.end()) return false;
              actions.insert(it, schedule::Action{it->stage, it->type, it->microbatch});
              return true;
            },
            {}),
      order("backward-done-twice", "The first rank executes a backward twice.",
            [](const FaultSite&, schedule::Schedule& schedule) {
              std::vector<schedule::Action>& actions = schedule.ranks.front();
              const auto it = std::find_if(actions.begin(), actions.end(), is_last_half);
              if (it == actions.end()) return false;
              actions.insert(it, schedule::Action{it->stage, it->type, it->microbatch});
              return true;
            }),
      order("backward-before-forward", "The last rank executes a backward before its forward.",
            [](const FaultSite&, schedule::Schedule& schedule) {
              std::vector<schedule::Action>& actions = schedule.ranks.back();
              const auto it = std::find_if(actions.begin(), actions.end(), [](const schedule::Action& action) {
                return action.type == schedule::ActionType::B || action.type == schedule::ActionType::I;
              });
              if (it == actions.end()) return false;
              std::rotate(actions.begin(), it, it + 1);
              return true;
            }),
      order(
          "stages-on-each-others-rank", "The map from stages to ranks exchanges the first two ranks.",
          [](const FaultSite&, schedule::Schedule& schedule) {
            for (int& rank : schedule.rank_of_stage)
              if (rank < 2) rank = 1 - rank;
            return true;
          },
          {}, 2),
      order(
          "ranks-disagree", "The last rank confuses micro-batches 0 and 1.",
          [](const FaultSite& site, schedule::Schedule& schedule) {
            return site.is_last_rank() && exchange(schedule, 0, 1, [](const schedule::Action&) { return true; });
          },
          {need::training, need::several_microbatches}, 2),
  };
}

}  // namespace plumbline::conformance
