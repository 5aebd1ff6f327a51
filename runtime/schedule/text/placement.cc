#include "runtime/schedule/text/placement.h"

#include <algorithm>
#include <map>
#include <span>
#include <tuple>

namespace plumbline::schedule {
namespace {

// A computation and its position.
struct Computation {
  int stage, microbatch, rank;
  std::size_t position;
};

using Computations = std::span<const Computation>;

std::string text(int number) { return std::to_string(number); }

[[noreturn]] void refuse(const Schedule& schedule, const Computation& entry, const std::string& reason) {
  const Action& action = schedule.ranks[entry.rank][entry.position];
  throw PlacementError(entry.rank, entry.position, to_string(action) + ": " + reason);
}

// All computations by stage, then micro-batch, then rank and position.
std::vector<Computation> computations(const Schedule& schedule) {
  std::vector<Computation> entries;
  for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
    const auto& actions = schedule.ranks[rank];
    for (std::size_t i = 0; i < actions.size(); ++i) {
      if (!is_compute(actions[i].type)) continue;
      entries.push_back({actions[i].stage, actions[i].microbatch, static_cast<int>(rank), i});
    }
  }
  std::stable_sort(entries.begin(), entries.end(), [](const Computation& a, const Computation& b) {
    return std::tie(a.stage, a.microbatch) < std::tie(b.stage, b.microbatch);
  });
  return entries;
}

// The number of distinct numbers; they must be 0, 1, ... without gaps.
int count_without_gaps(std::vector<int> numbers, const std::string& what) {
  std::sort(numbers.begin(), numbers.end());
  int expected = 0;
  for (int number : numbers) {
    if (number > expected) {
      throw InputError(what + " " + text(expected) + " has no F, B, I or W, but " + what + " " + text(numbers.back()) +
                       " has; they are numbered from 0 without gaps");
    }
    expected = number + 1;
  }
  return expected;
}

// One entry for each micro-batch that the stage has; each must be on one rank only.
std::vector<Computation> first_of_each_microbatch(const Schedule& schedule, Computations stage) {
  std::vector<Computation> firsts;
  for (const Computation& entry : stage) {
    if (firsts.empty() || firsts.back().microbatch != entry.microbatch) {
      firsts.push_back(entry);
    } else if (firsts.back().rank != entry.rank) {
      refuse(schedule, entry,
             "micro-batch " + text(entry.microbatch) + " of stage " + text(entry.stage) + " is on rank " +
                 text(firsts.back().rank) + " already (row " + text(firsts.back().rank + 1) + ")");
    }
  }
  return firsts;
}

bool on_one_rank(const std::vector<Computation>& stage) {
  return std::all_of(stage.begin(), stage.end(), [&](const Computation& e) { return e.rank == stage.front().rank; });
}

// The replicas of the micro-batches, as this stage alone implies them: by rank, in the order of the ranks' appearance.
std::vector<int> replicas_by(const std::vector<Computation>& stage) {
  std::map<int, int> replica_of_rank;
  std::vector<int> replicas;
  for (const Computation& entry : stage) {
    const int next = static_cast<int>(replica_of_rank.size());
    replicas.push_back(replica_of_rank.try_emplace(entry.rank, next).first->second);
  }
  return replicas;
}

// The rank of each replica of a stage; refuses a stage that divides the micro-batches differently.
std::vector<int> ranks_of_replicas(const Schedule& schedule, const std::vector<Computation>& stage, int replicas,
                                   int reference) {
  std::vector<const Computation*> first_of(replicas);
  std::map<int, const Computation*> first_on;
  for (const Computation& entry : stage) {
    const int replica = schedule.replica_of_microbatch[entry.microbatch];
    if (!first_of[replica]) first_of[replica] = &entry;
    const Computation& of = *first_of[replica];
    const Computation& on = *first_on.try_emplace(entry.rank, &entry).first->second;
    if (of.rank == entry.rank && schedule.replica_of_microbatch[on.microbatch] == replica) continue;
    const bool divided = of.rank != entry.rank;
    const Computation& other = divided ? of : on;
    refuse(schedule, entry,
           "stage " + text(entry.stage) + " does micro-batches " + text(other.microbatch) + " and " +
               text(entry.microbatch) + (divided ? " on two ranks, " + text(other.rank) + " and " : " on one rank, ") +
               text(entry.rank) + ", but stage " + text(reference) + (divided ? " on one" : " on two") +
               "; where stages are on several ranks, all divide the micro-batches in the same way");
  }
  std::vector<int> ranks;
  for (const Computation* entry : first_of) {
    if (!entry) {
      throw InputError("stage " + text(stage.front().stage) + " is on rank " + text(stage.front().rank) +
                       " only, but stage " + text(reference) + " on " + text(replicas) +
                       "; where stages are on several ranks, all divide the micro-batches in the same way");
    }
    ranks.push_back(entry->rank);
  }
  return ranks;
}

}  // namespace

void derive_placement(Schedule& schedule) {
  const std::vector<Computation> entries = computations(schedule);
  if (entries.empty()) throw InputError("there is no F, B, I or W");
  std::vector<int> stages, microbatches;
  for (const Computation& entry : entries) {
    stages.push_back(entry.stage);
    microbatches.push_back(entry.microbatch);
  }
  schedule.stages = count_without_gaps(std::move(stages), "stage");
  schedule.microbatches = count_without_gaps(std::move(microbatches), "micro-batch");
  schedule.rank_of_stage.clear();
  schedule.replica_of_microbatch.clear();

  std::vector<std::vector<Computation>> by_stage;
  for (auto begin = entries.begin(); begin != entries.end();) {
    const auto end = std::find_if(begin, entries.end(), [&](const Computation& e) { return e.stage != begin->stage; });
    by_stage.push_back(first_of_each_microbatch(schedule, Computations(begin, end)));
    begin = end;
  }
  const auto divided = std::find_if_not(by_stage.begin(), by_stage.end(), on_one_rank);
  if (divided == by_stage.end()) {
    for (const auto& stage : by_stage) schedule.rank_of_stage.push_back(stage.front().rank);
    return;
  }
  const auto reference = std::find_if(by_stage.begin(), by_stage.end(), [&](const std::vector<Computation>& stage) {
    return stage.size() == static_cast<std::size_t>(schedule.microbatches);
  });
  if (reference == by_stage.end()) {
    throw InputError("stage " + text(divided->front().stage) +
                     " is on several ranks, and no stage has all micro-batches, so replicas cannot be told apart");
  }
  schedule.replica_of_microbatch = replicas_by(*reference);
  const int replicas =
      1 + *std::max_element(schedule.replica_of_microbatch.begin(), schedule.replica_of_microbatch.end());
  std::vector<std::vector<int>> ranks;
  for (const auto& stage : by_stage) {
    ranks.push_back(ranks_of_replicas(schedule, stage, replicas, reference->front().stage));
  }
  for (int replica = 0; replica < replicas; ++replica) {
    for (const auto& of_stage : ranks) schedule.rank_of_stage.push_back(of_stage[replica]);
  }
}

}  // namespace plumbline::schedule
