#include "runtime/schedule/generators.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>

#include "runtime/error.h"

namespace plumbline {
namespace {

std::vector<Action> gpipe_order(int rank, int /*ranks*/, int microbatches) {
  std::vector<Action> order;
  for (int m = 0; m < microbatches; ++m) order.push_back({rank, ActionType::F, m});
  for (int m = 0; m < microbatches; ++m) order.push_back({rank, ActionType::B, m});
  return order;
}

std::vector<Action> one_f_one_b_order(int rank, int ranks, int microbatches) {
  const int warm_up = std::min(microbatches, ranks - 1 - rank);
  std::vector<Action> order;
  for (int m = 0; m < warm_up; ++m) order.push_back({rank, ActionType::F, m});
  for (int m = warm_up; m < microbatches; ++m) {
    order.push_back({rank, ActionType::F, m});
    order.push_back({rank, ActionType::B, m - warm_up});
  }
  for (int m = microbatches - warm_up; m < microbatches; ++m) order.push_back({rank, ActionType::B, m});
  return order;
}

// `warm_up` forwards first; from then on at most `lag` input halves are ahead of their weight halves.
std::vector<Action> zero_bubble_order(int rank, int microbatches, int warm_up, int lag) {
  std::vector<Action> order;
  int forwards = 0, weights = 0;
  const auto forward_if_left = [&] {
    if (forwards < microbatches) order.push_back({rank, ActionType::F, forwards++});
  };
  while (forwards < std::min(microbatches, warm_up)) forward_if_left();
  for (int m = 0; m < microbatches; ++m) {
    order.push_back({rank, ActionType::I, m});
    if (m + 1 - weights > lag) order.push_back({rank, ActionType::W, weights++});
    forward_if_left();
  }
  while (weights < microbatches) order.push_back({rank, ActionType::W, weights++});
  return order;
}

std::vector<Action> zb_h1_order(int rank, int ranks, int microbatches) {
  return zero_bubble_order(rank, microbatches, ranks - rank, rank);
}

std::vector<Action> zb_h2_order(int rank, int ranks, int microbatches) {
  return zero_bubble_order(rank, microbatches, 2 * (ranks - rank) - 1, 2 * rank);
}

// The idle time of a rank within the makespan, in units of tf = tb / 2.
double unsplit_idle(int ranks, int /*microbatches*/) { return 3.0 * (ranks - 1); }
double zb_h1_idle(int ranks, int microbatches) { return ranks - 1 + std::max(0, ranks - microbatches); }
double zb_h2_idle(int ranks, int microbatches) { return ranks - 1 + std::max(0, (2 * ranks - 1 - microbatches) / 2); }

struct Generator {
  std::string_view name;
  std::vector<Action> (*order_of_rank)(int rank, int ranks, int microbatches);
  double (*idle)(int ranks, int microbatches);
};

constexpr std::array kGenerators = {
    Generator{"gpipe", gpipe_order, unsplit_idle}, Generator{"1f1b", one_f_one_b_order, unsplit_idle},
    Generator{"zb-h1", zb_h1_order, zb_h1_idle}, Generator{"zb-h2", zb_h2_order, zb_h2_idle}};

// Positions are int, and nobody means more than this.
constexpr std::int64_t kMostForwards = std::int64_t{1} << 27;

const Generator& find_generator(const std::string& name, int ranks, int microbatches) {
  const auto found = std::find_if(kGenerators.begin(), kGenerators.end(),
                                  [&](const Generator& generator) { return generator.name == name; });
  if (found == kGenerators.end()) {
    std::string known;
    for (const Generator& generator : kGenerators) (known += known.empty() ? "" : ", ") += generator.name;
    throw InputError("there is no schedule " + quoted(name) + "; known are " + known);
  }
  const auto require_positive = [&](int number, const char* what) {
    if (number < 1) {
      throw InputError("schedule " + name + ": " + std::to_string(number) + " " + what + "; at least 1 is needed");
    }
  };
  require_positive(ranks, "ranks");
  require_positive(microbatches, "micro-batches");
  if (std::int64_t{ranks} * microbatches > kMostForwards) {
    throw InputError("schedule " + name + ": " + std::to_string(ranks) + " ranks x " + std::to_string(microbatches) +
                     " micro-batches; at most " + std::to_string(kMostForwards) + " are accepted");
  }
  return *found;
}

}  // namespace

std::vector<std::string> schedule_names() {
  std::vector<std::string> names;
  for (const Generator& generator : kGenerators) names.emplace_back(generator.name);
  return names;
}

Schedule make_schedule(const std::string& name, int ranks, int microbatches) {
  const Generator& generator = find_generator(name, ranks, microbatches);
  Schedule schedule{name, ranks, microbatches, {}, {}};
  for (int rank = 0; rank < ranks; ++rank) {
    schedule.rank_of_stage.push_back(rank);
    schedule.ranks.push_back(generator.order_of_rank(rank, ranks, microbatches));
  }
  return schedule;
}

double ideal_bubble(const std::string& name, int ranks, int microbatches) {
  const double idle = find_generator(name, ranks, microbatches).idle(ranks, microbatches);
  return idle / (3.0 * microbatches + idle);
}

}  // namespace plumbline
