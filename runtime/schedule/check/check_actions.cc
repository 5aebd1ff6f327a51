#include "runtime/schedule/check/check_parts.h"
#include "runtime/schedule/check/needs.h"
#include "runtime/schedule/check/replay.h"

namespace plumbline::schedule {
namespace {

class ActionCheck {
 public:
  ActionCheck(const Schedule& schedule, const StageGraph& graph, const ActionIndex& index, const CheckOptions& options,
              CheckReport& report)
      : schedule_(schedule),
        graph_(graph),
        index_(index),
        options_(options),
        report_(report),
        needs_(schedule, graph, index),
        lowered_(options.lowered || has_transport(schedule)) {}

  void run() {
    for (std::size_t rank = 0; rank < schedule_.ranks.size(); ++rank) check_rank(static_cast<int>(rank));
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
  std::string where(const Action& action) const {
    return describe_position(schedule_, {rank_of(action), index_.position(action)});
  }
  std::string on_rank_of(const Action& action) const { return " on rank " + std::to_string(rank_of(action)); }
  void complain(const Place& step, const std::string& reason) {
    report_.add(describe_position(schedule_, step) + ": " + reason);
  }

  void check_rank(int rank) {
    const std::vector<Action>& actions = schedule_.ranks[rank];
    for_each_entry(actions, [&](std::span<const Action> entry) {
      const auto begin = static_cast<int>(entry.data() - actions.data());
      const int end = begin + static_cast<int>(entry.size());
      for (int i = begin; i < end; ++i) {
        const Place step{rank, i};
        if (check_place(step)) check_order(step, begin, end);
        if (entry.size() > 1 && !is_compute(actions[i].type)) {
          complain(step, "is in a group, whose members must be F, B, I or W");
        }
      }
      if (entry.back().overlaps_next) complain({rank, end - 1}, "its group reaches past the end of the list");
    });
  }

  // The action exists, is on its stage's rank, is of a kind that this schedule may have, and appears once. For an
  // action of a whole stage only the stage's number and the kind are checked here.
  bool check_place(const Place& step) {
    const Action& action = schedule_.ranks[step.rank][step.position];
    const auto refuse = [&](const std::string& reason) {
      complain(step, reason);
      return false;
    };
    if (action.stage < 0 || action.stage >= schedule_.stages) {
      return refuse("there is no stage " + std::to_string(action.stage) + "; stages are 0 to " +
                    std::to_string(schedule_.stages - 1));
    }
    if (options_.forward_only && is_backward(action.type)) return refuse("does not belong in a forward-only schedule");
    if (!has_microbatch(action.type)) return true;
    if (action.microbatch < 0 || action.microbatch >= schedule_.microbatches) {
      return refuse("there is no micro-batch " + std::to_string(action.microbatch) + "; they are 0 to " +
                    std::to_string(schedule_.microbatches - 1));
    }
    if (rank_of(action) != step.rank)
      return refuse("stage " + std::to_string(action.stage) + " is" + on_rank_of(action));
    if (index_.position(action) != step.position) {
      return refuse("stands a second time, first at position " + std::to_string(index_.position(action)));
    }
    if ((is_send(action.type) || is_receive(action.type)) &&
        !carries(schedule_, graph_, action.type, action.stage, action.microbatch)) {
      return refuse("has nothing to carry: no edge of stage " + std::to_string(action.stage) +
                    " to or from another rank");
    }
    return true;
  }

  static bool is_backward(ActionType type) {
    return type != ActionType::F && type != ActionType::SEND_F && type != ActionType::RECV_F &&
           type != ActionType::WAIT_SEND_F && type != ActionType::UNSHARD && type != ActionType::RESHARD;
  }

  // The actions of its own rank that the action at `step` needs must precede its group, which is [begin, end).
  void check_order(const Place& step, int begin, int end) {
    const Action& action = schedule_.ranks[step.rank][step.position];
    const std::size_t count = has_microbatch(action.type) ? needs_.count(action) : 0;
    for (std::size_t number = 0; number < count; ++number) {
      const std::optional<Action> need = needs_.at(action, number);
      if (!need || rank_of(*need) != step.rank) continue;
      const int position = index_.position(*need);
      if (position < 0 && is_wait_send(action.type)) complain(step, "there is no " + to_string(*need) + " to wait for");
      if (position < begin) continue;
      complain(step, (position < end ? "is in one group with " : "stands before ") + to_string(*need) + " (position " +
                         std::to_string(position) + "), which must come first");
    }
  }

  void require_present(const Action& action) {
    if (!has(action)) report_.add(to_string(action) + " is missing" + on_rank_of(action));
  }

  void check_compute(int stage, int m) {
    require_present({stage, ActionType::F, m});
    if (options_.forward_only) return;
    const Action b{stage, ActionType::B, m}, i{stage, ActionType::I, m}, w{stage, ActionType::W, m};
    if (has(b) && (has(i) || has(w))) {
      report_.add(where(b) + ": is a full backward, but " + where(has(i) ? i : w) + " is a part of the same one");
    } else if (has(i) || has(w)) {
      require_present(i);
      require_present(w);
    } else {
      require_present(b);
    }
  }

  void check_transport(int stage, int m) {
    for (int output : graph_.outputs(stage)) {
      if (schedule_.rank_of(output, m) == schedule_.rank_of(stage, m)) continue;
      check_pair({stage, ActionType::SEND_F, m}, {output, ActionType::RECV_F, m});
      if (!options_.forward_only) check_pair({output, ActionType::SEND_B, m}, {stage, ActionType::RECV_B, m});
    }
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
  CheckReport& report_;
  const Needs needs_;
  const bool lowered_;
};

}  // namespace

void check_actions(const Schedule& schedule, const StageGraph& graph, const ActionIndex& index,
                   const CheckOptions& options, CheckReport& report) {
  ActionCheck(schedule, graph, index, options, report).run();
}

}  // namespace plumbline::schedule
