#include "runtime/schedule/orders/v/v_pattern.h"

#include <algorithm>
#include <array>
#include <tuple>

#include "runtime/error.h"
#include "runtime/schedule/orders/order.h"
#include "runtime/text/counted.h"

namespace plumbline::schedule {
namespace {

/// The actions of a rank for a micro-batch, in the order of the data: down the V and up, and the gradient down and up.
/// kWeight is a W of either stage, kWeightFar and kWeightNear the one after kInputFar and kInputNear.
enum Kind { kForwardNear, kForwardFar, kInputFar, kInputNear, kWeight, kWeightFar = kWeight, kWeightNear };

constexpr int kDataKinds = 4;  ///< the kinds that pass data on
constexpr int kPeriod = 6;     ///< slots from one micro-batch to the next

/// The slots of one rank: [kind][i] is that of the kind's i-th action, ascending.
using Slots = std::vector<std::vector<int>>;
/// The slot of a rank's first micro-batch, for each kind that passes data on.
using Pattern = std::array<int, kDataKinds>;

struct PatternNode {
  int slot, rank, kind, number;
};

// All actions by ascending slot.
std::vector<PatternNode> by_slot(const std::vector<Slots>& ranks) {
  std::vector<PatternNode> nodes;
  for (int r = 0; r < std::ssize(ranks); ++r) {
    for (int kind = 0; kind < std::ssize(ranks[r]); ++kind) {
      for (int i = 0; i < std::ssize(ranks[r][kind]); ++i) nodes.push_back({ranks[r][kind][i], r, kind, i});
    }
  }
  std::sort(nodes.begin(), nodes.end(), [](const PatternNode& a, const PatternNode& b) {
    return std::tie(a.slot, a.rank, a.kind) < std::tie(b.slot, b.rank, b.kind);
  });
  return nodes;
}

std::vector<Slots> repeat(const std::vector<Pattern>& patterns, int microbatches) {
  std::vector<Slots> ranks;
  for (const Pattern& pattern : patterns) {
    Slots& slots = ranks.emplace_back(kDataKinds);
    for (int kind = 0; kind < kDataKinds; ++kind) {
      for (int m = 0; m < microbatches; ++m) slots[kind].push_back(pattern[kind] + kPeriod * m);
    }
  }
  return ranks;
}

// The rank whose action of that kind must end first; -1 or one past the last rank when there is none.
int source_rank(int rank, int kind) { return kind == kForwardNear || kind == kInputFar ? rank - 1 : rank + 1; }

// Adds the weight halves, each in the first free slot after its input half: one kind for all of them or, with
// `by_stage`, one for each stage of the rank, of which the far one goes first.
void add_weights(Slots& slots, bool by_stage) {
  const int end = slots[kInputNear].back() + 1;
  std::vector<int> kind_at(end, -1);
  for (int kind = 0; kind < kDataKinds; ++kind) {
    for (const int slot : slots[kind]) kind_at[slot] = kind;
  }
  const int weight_kinds = by_stage ? 2 : 1;
  std::array<int, 2> open{};
  slots.resize(kDataKinds + weight_kinds);
  for (int slot = 0; slot < end || open[0] + open[1] > 0; ++slot) {
    const int kind = slot < end ? kind_at[slot] : -1;
    if (kind == kInputFar || kind == kInputNear) ++open[by_stage ? kind - kInputFar : 0];
    if (kind != -1) continue;
    for (int w = 0; w < weight_kinds; ++w) {
      if (open[w] == 0) continue;
      --open[w];
      slots[kWeight + w].push_back(slot);
      break;
    }
  }
}

/// The activations that a rank holds, slot after slot. Weight halves without their own slots are assumed to run in the
/// free ones.
struct Holding {
  int activations = 0;
  int open_weights = 0;  ///< input halves whose weight half has not run

  void pass(int kind, bool has_weights) {
    if (kind == kForwardNear || kind == kForwardFar) ++activations;
    if (kind == kInputFar || kind == kInputNear) ++open_weights;
    if (kind == kWeight || (kind == -1 && !has_weights && open_weights > 0)) {
      --activations;
      --open_weights;
    }
  }
};

// Moves actions to earlier slots, in the order of their slots: each to the first free slot after everything it needs at
// which no rank exceeds the original peak of activations.
class Squeeze {
 public:
  explicit Squeeze(std::vector<Slots>& ranks)
      : ranks_(ranks), has_weights_(ranks[0].size() > kDataKinds), nodes_(by_slot(ranks)), rows_(ranks.size()) {
    for (Row& row : rows_) {
      row.kind_at.assign(nodes_.back().slot + 1, -1);
      row.holding.resize(nodes_.back().slot + 1);
    }
    for (const PatternNode& node : nodes_) rows_[node.rank].kind_at[node.slot] = node.kind;
    for (Row& row : rows_) {
      Holding holding;
      for (const int kind : row.kind_at) {
        holding.pass(kind, has_weights_);
        most_ = std::max(most_, holding.activations);
      }
    }
  }

  void run() {
    // The middle of the order, where the pattern repeats, is unchanged; so is the beginning, once it is squeezed. With
    // few micro-batches there is no middle.
    enum { kBefore, kPatternRepeats, kAfter } phase = kBefore;
    bool no_middle = false;
    const int last = static_cast<int>(ranks_[0][kForwardNear].size()) - 1;
    for (const PatternNode& node : nodes_) {
      if (phase == kBefore && node.rank == 0 && node.kind == kInputNear) phase = no_middle ? kAfter : kPatternRepeats;
      if (node.rank == 0 && node.kind == kForwardNear && node.number == last) no_middle = true;
      const bool stays = phase == kPatternRepeats || (phase == kBefore && !has_weights_);
      if (phase == kPatternRepeats && node.kind == kForwardNear && node.number == last) phase = kAfter;
      settle(node, stays ? node.slot : earliest_slot(node));
    }
  }

 private:
  struct Row {
    std::vector<int> kind_at;      ///< per slot, -1: free
    std::vector<Holding> holding;  ///< after each slot, up to `settled`
    int settled = 0;               ///< slots before this one are final
    std::vector<int> input_slots;  ///< of the settled input halves, ascending
  };

  int after_needs(const PatternNode& node) const {
    const Slots& own = ranks_[node.rank];
    int slot = node.number > 0 ? own[node.kind][node.number - 1] : -1;
    if (node.kind == kWeight) return std::max(slot, rows_[node.rank].input_slots[node.number]) + 1;
    if (node.kind > 0) slot = std::max(slot, own[node.kind - 1][node.number]);
    const int source = source_rank(node.rank, node.kind);
    if (source >= 0 && source < std::ssize(ranks_)) slot = std::max(slot, ranks_[source][node.kind][node.number]);
    return slot + 1;
  }

  Holding holding_before(const Row& row, int slot) const { return slot == 0 ? Holding{} : row.holding[slot - 1]; }

  // Everything before `slot` on this rank is settled, so the activations held up to there are known.
  void advance(Row& row, int slot) {
    for (; row.settled < slot; ++row.settled) {
      row.holding[row.settled] = holding_before(row, row.settled);
      row.holding[row.settled].pass(row.kind_at[row.settled], has_weights_);
    }
  }

  // The first slot in [slot, node.slot) at which the rank would hold too much if the node moved to `slot`; node.slot if
  // there is none. From there on the rank holds no more than it did without the move.
  int overfull_slot(const Row& row, const PatternNode& node, int slot) const {
    Holding holding = holding_before(row, slot);
    holding.pass(node.kind, has_weights_);
    while (holding.activations <= most_) {
      if (++slot == node.slot) break;
      holding.pass(row.kind_at[slot], has_weights_);
    }
    return slot;
  }

  int earliest_slot(const PatternNode& node) {
    Row& row = rows_[node.rank];
    advance(row, node.slot);
    int slot = after_needs(node);
    PLUMBLINE_CHECK(slot <= node.slot, "a pattern in which data flows backwards in time");
    while (slot < node.slot) {
      if (row.kind_at[slot] != -1) {
        ++slot;
        continue;
      }
      // A slot between this one and the overfull one would be no better: the rank would hold as much there.
      const int overfull = overfull_slot(row, node, slot);
      if (overfull == node.slot) break;
      slot = overfull + 1;
    }
    return slot;
  }

  void settle(const PatternNode& node, int slot) {
    Row& row = rows_[node.rank];
    row.kind_at[node.slot] = -1;
    row.kind_at[slot] = node.kind;
    ranks_[node.rank][node.kind][node.number] = slot;
    row.settled = std::min(row.settled, slot);
    if (node.kind == kInputFar || node.kind == kInputNear) {
      row.input_slots.insert(std::upper_bound(row.input_slots.begin(), row.input_slots.end(), slot), slot);
    }
  }

  std::vector<Slots>& ranks_;
  const bool has_weights_;
  const std::vector<PatternNode> nodes_;
  std::vector<Row> rows_;
  int most_ = 0;
};

// Lets every action begin as soon as its predecessor on the rank and its needs have ended, each in one slot.
void run_eagerly(std::vector<Slots>& ranks) {
  std::vector<int> next(ranks.size(), 0);
  for (const PatternNode& node : by_slot(ranks)) {
    int slot = next[node.rank];
    const int source = source_rank(node.rank, node.kind);
    if (node.kind < kDataKinds && source >= 0 && source < std::ssize(ranks)) {
      slot = std::max(slot, ranks[source][node.kind][node.number] + 1);
    }
    ranks[node.rank][node.kind][node.number] = slot;
    next[node.rank] = slot + 1;
  }
}

void add_weights(std::vector<Slots>& ranks, bool by_stage) {
  for (Slots& slots : ranks) add_weights(slots, by_stage);
}

void drop_weights(std::vector<Slots>& ranks) {
  for (Slots& slots : ranks) slots.resize(kDataKinds);
}

Action action_of(const PatternNode& node, int ranks) {
  constexpr ActionType kTypes[] = {ActionType::F, ActionType::F, ActionType::I,
                                   ActionType::I, ActionType::W, ActionType::W};
  const bool near = node.kind == kForwardNear || node.kind == kInputNear || node.kind == kWeightNear;
  return {near ? node.rank : 2 * ranks - 1 - node.rank, kTypes[node.kind], node.number};
}

Schedule from_pattern(const ScheduleRequest& request, const std::vector<Pattern>& patterns) {
  constexpr std::int64_t kMostSlots = std::int64_t{1} << 28;  // over all ranks, each from its first action to its last
  if (std::int64_t{6} * request.ranks * (std::int64_t{request.ranks} + request.microbatches) > kMostSlots) {
    refuse(request, counted(request.ranks, "rank") + " and " + counted(request.microbatches, "micro-batch") +
                        " take more than " + std::to_string(kMostSlots) + " slots of time to squeeze; take fewer");
  }
  std::vector<Slots> ranks = repeat(patterns, request.microbatches);
  add_weights(ranks, false);
  Squeeze(ranks).run();
  run_eagerly(ranks);
  drop_weights(ranks);
  Squeeze(ranks).run();
  add_weights(ranks, false);
  run_eagerly(ranks);
  drop_weights(ranks);
  add_weights(ranks, true);
  std::vector<std::vector<Action>> orders(request.ranks);
  for (const PatternNode& node : by_slot(ranks)) orders[node.rank].push_back(action_of(node, request.ranks));
  return assemble(request, v_placement(request), [&](int rank) { return std::move(orders[rank]); });
}

}  // namespace

Schedule v_half(const ScheduleRequest& request) {
  const int p = request.ranks, shift = p % 2 == 0 ? 3 : 0;
  std::vector<Pattern> patterns;
  for (int r = 0; r < p; ++r) {
    patterns.push_back({2 * r, 3 * p - r - 2, 3 * p + shift + 2 * r - 1, 6 * p + shift - r - 2});
  }
  return from_pattern(request, patterns);
}

Schedule v_min(const ScheduleRequest& request) {
  const int p = request.ranks, shift = p % 3 == 0 ? 2 : 0;
  std::vector<Pattern> patterns;
  for (int r = 0; r < p; ++r) {
    patterns.push_back({r, 2 * p - r - 1, 2 * p + shift + r, 4 * p + shift - r - 1});
  }
  return from_pattern(request, patterns);
}

}  // namespace plumbline::schedule
