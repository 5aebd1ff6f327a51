#include "runtime/partition/budget/peak_plan.h"

#include <algorithm>
#include <utility>

#include "runtime/error.h"
#include "runtime/partition/budget/budget.h"
#include "runtime/partition/budget/peak_model.h"
#include "runtime/partition/budget/segments.h"
#include "runtime/partition/cut/min_bytes.h"

namespace plumbline::partition {
namespace {

struct Candidate {
  std::vector<char> saved;  ///< by node
  PeakModel::Answer answer;
};

/// Values that are saved together: one value, or all results of one call.
struct Item {
  std::vector<NodeIndex> nodes;
  double worth = 0;  ///< cost per byte
};

class Planner {
 public:
  Planner(const CutInput& input, const PartitionOptions& options)
      : input_(input),
        options_(options),
        nodes_(input.graph.nodes.size()),
        model_(input),
        asks_left_(std::clamp<int64_t>(2'000'000 / std::max<int64_t>(1, std::ssize(input.graph.nodes)), 18, 240)) {}

  PeakPlan plan() {
    try_candidates();
    PLUMBLINE_CHECK(!candidates_.empty(), "saving everything is always a plan");
    PeakPlan plan;
    plan.most = candidates_.front().answer.peak;
    plan.least = plan.most;
    for (const Candidate& each : candidates_) plan.least = std::min(plan.least, each.answer.peak);
    plan.floor = model_.floor();
    const double room = options_.budget * static_cast<double>(plan.most - plan.floor);
    plan.limit = std::max(plan.least, plan.floor + static_cast<int64_t>(room));
    Candidate best = fill_up(plan.limit);
    plan.peak = best.answer.peak;
    plan.recompute = best.answer.recompute;
    for (size_t i = 0; i < nodes_; ++i)
      if ((best.saved[i] && model_.savable()[i]) || is_forward_input(input_.graph.nodes[i]))
        plan.saved.push_back(static_cast<NodeIndex>(i));
    return plan;
  }

 private:
  PeakModel::Answer ask(const std::vector<char>& saved) {
    --asks_left_;
    return model_.ask(saved);
  }

  /// Adds the values that must be saved: without them the plan would not be allowed.
  int64_t consider(std::vector<char> saved) {
    for (size_t i = 0; i < nodes_; ++i)
      if (model_.forced()[i] || input_.graph.nodes[i].out.kind == JointResult::Kind::Scalar) saved[i] = 1;
    const PeakModel::Answer answer = ask(saved);
    if (answer.allowed) candidates_.push_back({std::move(saved), answer});
    return answer.peak;
  }

  void consider(const std::vector<NodeIndex>& nodes) {
    std::vector<char> saved(nodes_, 0);
    for (const NodeIndex node : nodes) saved[node] = 1;
    consider(std::move(saved));
  }

  void try_candidates() {
    // Everything of the forward that the backward reads: what the default mode and eager mode keep.
    consider(std::vector<char>(nodes_, 1));
    if (candidates_.empty()) refuse();
    std::vector<char> made(nodes_);
    for (size_t i = 0; i < nodes_; ++i) made[i] = model_.made_by_forward(static_cast<NodeIndex>(i));
    consider(std::move(made));
    consider(std::vector<char>(nodes_, 0));
    try_segments();
    if (nodes_ <= kFewNodes) try_cuts();
  }

  void try_segments() {
    const ForwardLine line(model_);
    std::vector<char> last;
    int64_t best_peak = INT64_MAX, best_limit = 0;
    const auto attempt = [&](int64_t limit) {
      std::vector<char> saved = line.checkpoints(limit);
      if (saved == last) return;
      last = saved;
      const int64_t peak = consider(std::move(saved));
      if (peak < best_peak) {
        best_peak = peak;
        best_limit = limit;
      }
    };
    // Starts with two segments; once half of the attempts are spent, the segments are small enough.
    const int64_t enough = asks_left_ / 2;
    for (int64_t limit = line.kept_bytes() / 2; limit > 0 && asks_left_ > enough; limit /= 2) {
      attempt(limit);
      if (limit < best_limit / 16) break;
    }
    const int64_t around = best_limit;
    for (const int64_t eighths : {5, 6, 7, 10, 12, 14})
      if (asks_left_ > enough / 2) attempt(around / 8 * eighths);
  }

  void try_cuts() {
    // Rules under which no cut exists yield no plan; others may.
    const auto attempt = [&](auto&& cut) {
      std::vector<NodeIndex> saved;
      try {
        saved = cut();
      } catch (const InputError&) {
        return;
      }
      consider(saved);
    };
    attempt([&] { return min_bytes_cut(input_).saved; });
    attempt([&] { return min_cut(input_, input_.policy.bans).saved; });
    PartitionOptions by_saved = options_;
    by_saved.measure = BudgetMeasure::Saved;
    by_saved.solver.solve = [](const BudgetProblem& problem) { return knapsack_greedy(problem.knapsack).kept; };
    std::vector<CutRecord> unused;
    for (const double budget : {0.5, 0.25, 0.1}) {
      by_saved.budget = budget;
      attempt([&] { return saved_within_budget(input_, by_saved, unused); });
    }
  }

  /// The cheapest plan within the limit, after using up the room that plans with low peaks leave.
  Candidate fill_up(int64_t limit) {
    std::vector<size_t> within;
    for (size_t c = 0; c < candidates_.size(); ++c)
      if (candidates_[c].answer.peak <= limit) within.push_back(c);
    std::stable_sort(within.begin(), within.end(),
                     [&](size_t a, size_t b) { return candidates_[a].answer.peak < candidates_[b].answer.peak; });
    size_t best = within.front();
    for (const size_t c : within)
      if (cheaper(candidates_[c], candidates_[best])) best = c;
    Candidate cheapest = candidates_[best];
    within.resize(std::min<size_t>(within.size(), 3));
    for (size_t k = 0; k < within.size(); ++k) {
      Candidate filled = candidates_[within[k]];
      if (filled.answer.recompute == 0) continue;
      stop_at_ = asks_left_ - asks_left_ / static_cast<int64_t>(within.size() - k);
      ask(filled.saved);
      const std::vector<Item> items = worth_saving();
      save_what_fits(filled, items, limit);
      if (cheaper(filled, cheapest)) cheapest = std::move(filled);
    }
    return cheapest;
  }

  static bool cheaper(const Candidate& a, const Candidate& b) {
    return std::pair(a.answer.recompute, a.answer.peak) < std::pair(b.answer.recompute, b.answer.peak);
  }

  /// What the plan evaluated last recomputes, the most worth first; among equals the last one, whose memory is freed
  /// soonest.
  std::vector<Item> worth_saving() const {
    const std::vector<char>& again = model_.recomputed();
    std::vector<Item> items;
    for (NodeIndex i = static_cast<NodeIndex>(nodes_) - 1; i >= 0; --i) {
      if (!again[i] || model_.cost(i) <= 0) continue;
      Item item;
      if (input_.graph.nodes[i].multi_output) {
        for (const NodeIndex part : input_.edges.users(i))
          if (model_.savable()[part] && again[part]) item.nodes.push_back(part);
      } else if (model_.savable()[i]) {
        item.nodes.push_back(i);
      }
      if (item.nodes.empty()) continue;
      int64_t bytes = 1;
      for (const NodeIndex node : item.nodes) bytes += model_.bytes(node);
      item.worth = model_.cost(i) / static_cast<double>(bytes);
      items.push_back(std::move(item));
    }
    std::stable_sort(items.begin(), items.end(), [](const Item& a, const Item& b) { return a.worth > b.worth; });
    return items;
  }

  /// Adds items while the peak stays within the limit: the whole list if that fits, otherwise each half in turn.
  void save_what_fits(Candidate& plan, std::span<const Item> items, int64_t limit) {
    if (items.empty() || asks_left_ <= stop_at_) return;
    std::vector<char> saved = plan.saved;
    for (const Item& item : items)
      for (const NodeIndex node : item.nodes) saved[node] = 1;
    const PeakModel::Answer answer = ask(saved);
    if (answer.allowed && answer.peak <= limit) {
      plan = {std::move(saved), answer};
      return;
    }
    if (items.size() == 1) return;
    save_what_fits(plan, items.first(items.size() / 2), limit);
    save_what_fits(plan, items.subspan(items.size() / 2), limit);
  }

  /// Even the plan that saves everything repeats a call that must run once: min_bytes_cut() throws the explanation.
  [[noreturn]] void refuse() const {
    min_bytes_cut(input_);
    throw InputError("partition: no plan by peak: a call that may run only once cannot be saved either");
  }

  static constexpr size_t kFewNodes = 5'000;

  const CutInput& input_;
  const PartitionOptions& options_;
  const size_t nodes_;
  PeakModel model_;
  int64_t asks_left_, stop_at_ = 0;
  std::vector<Candidate> candidates_;
};

}  // namespace

PeakPlan plan_by_peak(const CutInput& input, const PartitionOptions& options) { return Planner(input, options).plan(); }

std::vector<NodeIndex> saved_within_peak(const CutInput& input, const PartitionOptions& options,
                                         std::vector<CutRecord>& cuts) {
  PeakPlan plan = plan_by_peak(input, options);
  cuts.push_back({{"peak"}, {}, plan.saved, {}});
  return std::move(plan.saved);
}

}  // namespace plumbline::partition
