#include "runtime/schedule/check.h"

#include <optional>

#include "runtime/error.h"
#include "runtime/schedule/replay.h"

namespace plumbline {
namespace {

// Collects the first `limit` messages and counts the rest.
class Report {
 public:
  explicit Report(std::size_t limit) : limit_(limit) {}

  void add(std::string message) {
    if (messages_.size() < limit_) {
      messages_.push_back(std::move(message));
    } else {
      ++untold_;
    }
  }

  bool empty() const { return messages_.empty() && untold_ == 0; }

  std::vector<std::string> take() {
    if (untold_ > 0) messages_.push_back("and " + std::to_string(untold_) + " more");
    return std::move(messages_);
  }

 private:
  std::size_t limit_, untold_ = 0;
  std::vector<std::string> messages_;
};

// Everything that can be seen without running the schedule.
class StaticCheck {
 public:
  StaticCheck(const Schedule& schedule, const StageGraph& graph, const ActionIndex& index, const CheckOptions& options,
              Report& report)
      : schedule_(schedule), graph_(graph), index_(index), options_(options), report_(report) {
    lowered_ = options.lowered || has_communication(schedule);
  }

  void run() {
    for (std::size_t rank = 0; rank < schedule_.ranks.size(); ++rank) {
      for (std::size_t i = 0; i < schedule_.ranks[rank].size(); ++i) {
        check_place({static_cast<int>(rank), static_cast<int>(i)});
      }
    }
    for (int stage = 0; stage < schedule_.stages; ++stage) {
      for (int m = 0; m < schedule_.microbatches; ++m) {
        check_compute(stage, m);
        if (lowered_) check_transport(stage, m);
      }
    }
  }

 private:
  int rank_of(const Action& action) const { return schedule_.rank_of(action.stage, action.microbatch); }
  bool has(const Action& action) const { return index_.position(action) >= 0; }
  bool wanted(ActionType type) const {
    return !options_.forward_only || type == ActionType::F || type == ActionType::SEND_F || type == ActionType::RECV_F;
  }
  std::string where(const Action& action) const {
    return describe_position(schedule_, {rank_of(action), index_.position(action)});
  }
  std::string on_rank_of(const Action& action) const { return " on rank " + std::to_string(rank_of(action)); }

  // The action exists, stands on its stage's rank, belongs to this kind of schedule, and is there once.
  void check_place(const Step& step) {
    const Action& action = schedule_.ranks[step.rank][step.position];
    const auto complain = [&](const std::string& reason) {
      report_.add(describe_position(schedule_, step) + ": " + reason);
    };
    if (action.stage < 0 || action.stage >= schedule_.stages) {
      return complain("there is no stage " + std::to_string(action.stage) + "; stages are 0 to " +
                      std::to_string(schedule_.stages - 1));
    }
    if (action.microbatch < 0 || action.microbatch >= schedule_.microbatches) {
      return complain("there is no micro-batch " + std::to_string(action.microbatch) + "; they are 0 to " +
                      std::to_string(schedule_.microbatches - 1));
    }
    if (rank_of(action) != step.rank) {
      return complain("stage " + std::to_string(action.stage) + " is" + on_rank_of(action));
    }
    if (index_.position(action) != step.position) {
      return complain("stands a second time, first at position " + std::to_string(index_.position(action)));
    }
    if (!wanted(action.type)) return complain("does not belong in a forward-only schedule");
    if (!is_compute(action.type) && !carries(schedule_, graph_, action.type, action.stage, action.microbatch)) {
      complain("has nothing to carry: no edge of stage " + std::to_string(action.stage) + " to or from another rank");
    }
  }

  void require_present(const Action& action) {
    if (!has(action)) report_.add(to_string(action) + " is missing" + on_rank_of(action));
  }

  // Both stand on one rank; says nothing where one is missing.
  void require_order(const Action& first, const Action& second) {
    if (has(first) && has(second) && index_.position(first) > index_.position(second)) {
      report_.add(where(second) + ": stands before " + to_string(first) + " (position " +
                  std::to_string(index_.position(first)) + "), which must come first");
    }
  }

  void check_compute(int stage, int m) {
    const Action f{stage, ActionType::F, m}, b{stage, ActionType::B, m}, i{stage, ActionType::I, m},
        w{stage, ActionType::W, m};
    require_present(f);
    for (int input : graph_.inputs(stage)) {
      if (schedule_.rank_of(input, m) == rank_of(f)) require_order({input, ActionType::F, m}, f);
    }
    if (options_.forward_only) return;
    if (has(b) && (has(i) || has(w))) {
      report_.add(where(b) + ": is a full backward, but " + where(has(i) ? i : w) + " is a part of the same one");
    } else if (has(i) || has(w)) {
      require_present(i);
      require_present(w);
    } else {
      require_present(b);
    }
    const Action backward = input_backward(index_, stage, m);
    require_order(f, b);
    require_order(f, i);
    require_order(i, w);
    for (int output : graph_.outputs(stage)) {
      if (schedule_.rank_of(output, m) == rank_of(f)) require_order(input_backward(index_, output, m), backward);
    }
  }

  void check_transport(int stage, int m) {
    const Action f{stage, ActionType::F, m}, backward = input_backward(index_, stage, m);
    for (int output : graph_.outputs(stage)) {
      if (schedule_.rank_of(output, m) == rank_of(f)) continue;
      check_pair({stage, ActionType::SEND_F, m}, {output, ActionType::RECV_F, m});
      if (!options_.forward_only) check_pair({output, ActionType::SEND_B, m}, {stage, ActionType::RECV_B, m});
    }
    require_order({stage, ActionType::RECV_F, m}, f);
    require_order(f, {stage, ActionType::SEND_F, m});
    require_order({stage, ActionType::RECV_B, m}, backward);
    require_order(backward, {stage, ActionType::SEND_B, m});
  }

  void check_pair(const Action& send, const Action& receive) {
    if (has(send) && !has(receive)) {
      report_.add(where(send) + ": its partner " + to_string(receive) + " is missing" + on_rank_of(receive));
    } else if (has(receive) && !has(send)) {
      report_.add(where(receive) + ": its partner " + to_string(send) + " is missing" + on_rank_of(send));
    } else if (!has(send)) {
      report_.add(to_string(send) + on_rank_of(send) + " and its partner " + to_string(receive) + on_rank_of(receive) +
                  " are missing");
    }
  }

  const Schedule& schedule_;
  const StageGraph& graph_;
  const ActionIndex& index_;
  const CheckOptions& options_;
  Report& report_;
  bool lowered_ = false;
};

void find_unreceived_sends(const Schedule& schedule, const StageGraph& graph, const ActionIndex& index,
                           Report& report) {
  for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
    for (std::size_t i = 0; i < schedule.ranks[rank].size(); ++i) {
      const Action& send = schedule.ranks[rank][i];
      const bool forward = send.type == ActionType::SEND_F;
      if (!index.in_range(send) || (!forward && send.type != ActionType::SEND_B)) continue;
      for (int other : forward ? graph.outputs(send.stage) : graph.inputs(send.stage)) {
        const Action receive{other, forward ? ActionType::RECV_F : ActionType::RECV_B, send.microbatch};
        if (schedule.rank_of(other, send.microbatch) == schedule.rank_of(send.stage, send.microbatch) ||
            index.position(receive) >= 0)
          continue;
        report.add(describe_position(schedule, {static_cast<int>(rank), static_cast<int>(i)}) +
                   ": never completes, since rank " + std::to_string(schedule.rank_of(other, send.microbatch)) +
                   " never posts " + to_string(receive));
      }
    }
  }
}

void find_deadlocks(const Schedule& schedule, const StageGraph& graph, const ActionIndex& index, SendModel model,
                    Report& report) {
  const Replay played = replay(schedule, graph, index);
  if (!played.deadlock.empty()) return report.add(played.deadlock);
  // All ranks came to the end of their lists, so every receive there is was posted.
  if (model == SendModel::Rendezvous) find_unreceived_sends(schedule, graph, index, report);
}

// Runs `look` on what all checks need, or reports why that cannot be made.
template <typename Look>
std::vector<std::string> examine(const Schedule& schedule, const std::vector<StageEdge>& edges, std::size_t limit,
                                 Look look) {
  Report report(limit);
  if (std::string problem = shape_problem(schedule); !problem.empty()) return {std::move(problem)};
  std::optional<StageGraph> graph;
  try {
    graph.emplace(schedule.stages, edges);
  } catch (const InputError& error) {
    return {error.what()};
  }
  look(*graph, ActionIndex(schedule), report);
  return report.take();
}

}  // namespace

std::vector<std::string> violations(const Schedule& schedule, const std::vector<StageEdge>& edges,
                                    const CheckOptions& options) {
  return examine(schedule, edges, options.limit,
                 [&](const StageGraph& graph, const ActionIndex& index, Report& report) {
                   StaticCheck(schedule, graph, index, options, report).run();
                   if (report.empty()) find_deadlocks(schedule, graph, index, SendModel::Rendezvous, report);
                 });
}

std::vector<std::string> deadlocks(const Schedule& schedule, const std::vector<StageEdge>& edges, SendModel model) {
  return examine(schedule, edges, CheckOptions{}.limit,
                 [&](const StageGraph& graph, const ActionIndex& index, Report& report) {
                   find_deadlocks(schedule, graph, index, model, report);
                 });
}

void require_valid(const Schedule& schedule, const std::vector<StageEdge>& edges, const CheckOptions& options) {
  const std::vector<std::string> found = violations(schedule, edges, options);
  if (found.empty()) return;
  std::string text = "schedule " + schedule.name + ": " + found.front();
  if (found.size() > 1) text += " (the first of several violations)";
  throw InputError(text);
}

}  // namespace plumbline
