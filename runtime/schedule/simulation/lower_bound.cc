#include "runtime/schedule/simulation/lower_bound.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>

#include "runtime/error.h"
#include "runtime/schedule/simulation/awaited.h"
#include "runtime/schedule/simulation/skip_traffic.h"
#include "runtime/text/significant.h"

namespace plumbline::schedule {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

// The least time of each kind of action of a stage, from its beginning until its result can be used or sent: for a
// member of a group that of the whole group. No chain of dependencies passes through a group twice.
using LeastTimes = std::vector<std::array<double, 4>>;

struct Work {
  double busy = 0;   // of a rank
  double early = 0;  // of that, units other than a lone W
};

// The earliest times around a stage's actions, in one replica, without any contention.
struct Reach {
  double forward = 0;   // before its F
  double backward = 0;  // before its B or I
  double tail = 0;      // after its B or I (after its F when forward-only)
};

class Bounds {
 public:
  Bounds(const Schedule& compute, const StageGraph& graph, const SkipTraffic& traffic, const StepCosts& costs)
      : compute_(compute),
        graph_(graph),
        traffic_(traffic),
        costs_(costs),
        forward_only_(!has_backward(compute)),
        least_(compute.stages),
        work_(compute.ranks.size()) {
    for (auto& times : least_) times.fill(kNever);
    for (std::size_t rank = 0; rank < compute.ranks.size(); ++rank) add_units(rank);
  }

  LowerBound find() {
    std::vector<double> heads(work_.size(), kNever), tails(work_.size(), kNever);
    for (int replica = 0; replica < compute_.replicas(); ++replica) {
      const auto microbatches =
          compute_.replica_of_microbatch.empty()
              ? static_cast<std::ptrdiff_t>(compute_.microbatches)
              : std::count(compute_.replica_of_microbatch.begin(), compute_.replica_of_microbatch.end(), replica);
      if (microbatches == 0) continue;
      const std::vector<Reach> reaches = reach(replica);
      for (int stage = 0; stage < compute_.stages; ++stage) {
        const int rank = place(replica, stage);
        heads[rank] = std::min(heads[rank], reaches[stage].forward);
        tails[rank] = std::min(tails[rank], reaches[stage].tail);
        bound_.chain = std::max(bound_.chain, middle(stage, reaches[stage]) + reaches[stage].tail);
      }
      if (costs_.links.occupied) add_links(replica, static_cast<double>(microbatches), reaches);
    }
    bound_.makespan = bound_.chain;
    bound_.reason = forward_only_ ? "one micro-batch through all stages takes " + significant(bound_.chain, 6)
                                  : "one micro-batch through all stages and back takes " + significant(bound_.chain, 6);
    take_ranks(heads, tails);
    take_links();
    return bound_;
  }

 private:
  struct LinkUse {
    double first = kNever;  // before its first message
    double busy = 0;
    double after = kNever;  // from the end of its last message
  };

  void add_units(std::size_t rank) {
    for_each_entry(compute_.ranks[rank], [&](std::span<const Action> members) {
      if (!is_compute(members.front().type)) return;  // takes no time of the rank
      const double time = time_of(costs_, members);
      bool lone = true;
      for (const Action& member : members) {
        double& least = least_[member.stage][static_cast<std::size_t>(member.type)];
        least = std::min(least, time);
        lone = lone && member.type == ActionType::W;
      }
      work_[rank].busy += time;
      if (!lone) work_[rank].early += time;
    });
  }

  int place(int replica, int stage) const { return compute_.rank_of_stage[replica * compute_.stages + stage]; }
  double least(int stage, ActionType type) const { return least_[stage][static_cast<std::size_t>(type)]; }
  double forward(int stage) const { return least(stage, ActionType::F); }
  double backward(int stage) const { return std::min(least(stage, ActionType::I), least(stage, ActionType::B)); }

  // The earliest end of a B or I of the stage (an F when forward-only).
  double middle(int stage, const Reach& reach) const {
    return forward_only_ ? reach.forward + forward(stage) : reach.backward + backward(stage);
  }

  // How long a message occupies its link: a value, or its gradient on the way back.
  double occupancy(const Link& link, int from, int to) const {
    return traffic_.bytes(std::min(from, to), std::max(from, to)) / link.bandwidth;
  }

  double travel(int replica, int from, int to) const {
    const int a = place(replica, from), b = place(replica, to);
    if (a == b) return 0;
    const Link& link = link_of(costs_, a, b);
    return occupancy(link, from, to) + latency(costs_, link, from);
  }

  std::vector<Reach> reach(int replica) const {
    const int stages = compute_.stages;
    std::vector<Reach> all(stages);
    for (int s = 0; s < stages; ++s) {
      for (int u : graph_.inputs(s)) {
        all[s].forward = std::max(all[s].forward, all[u].forward + forward(u) + travel(replica, u, s));
      }
    }
    for (int s = stages - 1; s >= 0; --s) {
      all[s].backward = all[s].forward + forward(s);
      for (int t : graph_.outputs(s)) {
        if (forward_only_) {
          all[s].tail = std::max(all[s].tail, travel(replica, s, t) + forward(t) + all[t].tail);
        } else {
          all[s].backward = std::max(all[s].backward, all[t].backward + backward(t) + travel(replica, t, s));
        }
      }
    }
    for (int s = 0; s < stages && !forward_only_; ++s) {
      // An I's own W must follow it; they cannot share a group.
      if (least(s, ActionType::B) == kNever) all[s].tail = least(s, ActionType::W);
      for (int u : graph_.inputs(s)) {
        all[s].tail = std::max(all[s].tail, travel(replica, s, u) + backward(u) + all[u].tail);
      }
    }
    return all;
  }

  void add_links(int replica, double microbatches, const std::vector<Reach>& reaches) {
    const auto add = [&](int from, int to, double made, double used) {
      const int a = place(replica, from), b = place(replica, to);
      if (a == b) return;
      const Link& link = link_of(costs_, a, b);
      LinkUse& use = links_[{a, b}];
      use.first = std::min(use.first, made);
      use.busy += microbatches * occupancy(link, from, to);
      use.after = std::min(use.after, latency(costs_, link, from) + used);
    };
    for (int s = 0; s < compute_.stages; ++s) {
      for (int t : graph_.outputs(s)) {
        add(s, t, reaches[s].forward + forward(s), forward(t));
        if (!forward_only_) add(t, s, reaches[t].backward + backward(t), backward(s));
      }
    }
  }

  void take_ranks(const std::vector<double>& heads, const std::vector<double>& tails) {
    for (std::size_t rank = 0; rank < work_.size(); ++rank) {
      if (heads[rank] == kNever) continue;
      const double whole = heads[rank] + work_[rank].busy;
      const double early = heads[rank] + work_[rank].early + tails[rank];
      const double bound = std::max(whole, early);
      bound_.busiest_rank = std::max(bound_.busiest_rank, bound);
      if (bound <= bound_.makespan) continue;
      bound_.makespan = bound;
      bound_.reason = "rank " + std::to_string(rank) + ": at least " + significant(heads[rank], 6) +
                      " before its first action, " +
                      significant(whole >= early ? work_[rank].busy : work_[rank].early, 6) + " of work";
      if (whole < early) bound_.reason += ", " + significant(tails[rank], 6) + " after it";
    }
  }

  void take_links() {
    for (const auto& [ends, use] : links_) {
      const double bound = use.first + use.busy + use.after;
      bound_.busiest_link = std::max(bound_.busiest_link, bound);
      if (bound <= bound_.makespan) continue;
      bound_.makespan = bound;
      bound_.reason = "the link from rank " + std::to_string(ends.first) + " to rank " + std::to_string(ends.second) +
                      " is busy for " + significant(use.busy, 6);
    }
  }

  const Schedule& compute_;
  const StageGraph& graph_;
  const SkipTraffic& traffic_;
  const StepCosts& costs_;
  const bool forward_only_;
  LeastTimes least_;
  std::vector<Work> work_;
  std::map<std::pair<int, int>, LinkUse> links_;
  LowerBound bound_;
};

}  // namespace

LowerBound lower_bound(const Schedule& compute, const std::vector<StageEdge>& edges, const StepCosts& costs) {
  const std::string problem = shape_problem(compute);
  if (!problem.empty()) throw InputError("lower bound of schedule " + compute.name + ": " + problem);
  const StageGraph graph(compute.stages, with_skips(edges, costs.skips));
  if (has_transport(compute) || !is_complete(compute, graph, !has_backward(compute))) {
    throw InputError("lower bound of schedule " + compute.name + ": it is no complete compute schedule");
  }
  require_costs(compute, costs);
  return Bounds(compute, graph, SkipTraffic(graph, edges, costs), costs).find();
}

}  // namespace plumbline::schedule
