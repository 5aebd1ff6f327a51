#include "bench/gaps/step_times.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "runtime/error.h"
#include "runtime/io/json_place.h"
#include "runtime/io/tensor_file.h"

namespace plumbline::bench {
namespace {

using schedule::TimedAction;

constexpr int kMostRanks = 4096;
constexpr double kMilliseconds = 1000;  // of a second

double seconds_at(const JsonPlace& place, double least) {
  const double value = place.json().is_number() ? place.json().get<double>() : std::numeric_limits<double>::quiet_NaN();
  if (!std::isfinite(value)) place.fail("a number of seconds");
  if (value < least) place.refuse("is before the time that precedes it; the computations of a rank do not overlap");
  return value;
}

schedule::Action computation_at(const JsonPlace& place) {
  const std::string text = place.text();
  try {
    const schedule::Action action = schedule::parse_action(text);
    if (schedule::is_compute(action.type)) return action;
  } catch (const InputError&) {
  }
  place.fail("a computation such as \"0F2\", of the kinds F, B, I and W");
}

std::vector<TimedAction> step_of(const JsonPlace& line) {
  std::vector<TimedAction> step;
  std::set<std::string> seen;
  double now = std::numeric_limits<double>::lowest();
  for (const JsonPlace& item : line.items()) {
    const std::vector<JsonPlace> parts = item.items(3);
    TimedAction timed{computation_at(parts[0]), seconds_at(parts[1], now), 0};
    now = timed.end = seconds_at(parts[2], timed.begin);
    if (!seen.insert(parts[0].text()).second) parts[0].refuse("is there a second time in this step");
    step.push_back(timed);
  }
  return step;
}

std::string file_name(int rank) { return "rank" + std::to_string(rank) + ".jsonl"; }

}  // namespace

RankTimes parse_rank_times(const std::string& text, const std::string& source) {
  RankTimes times;
  std::istringstream in(text);
  size_t number = 0;
  for (std::string line; std::getline(in, line);) {
    const std::string place_of_line = source + ":" + std::to_string(++number);
    const nlohmann::json json = parse_json(line, place_of_line);
    const JsonPlace place(json, place_of_line);
    if (number > 1) {
      times.steps.push_back(step_of(place));
      continue;
    }
    place.expect_only({"schema", "rank", "ranks"});
    place["schema"].one_of({"plumbline-times/1"});
    times.ranks = place["ranks"].small(1, kMostRanks);
    times.rank = place["rank"].small(0, times.ranks - 1);
  }
  if (number == 0) throw InputError(source + ": is empty; expected the times that plumbline_times.py writes");
  return times;
}

std::vector<schedule::Trace> read_step_times(const std::filesystem::path& folder) {
  std::vector<RankTimes> ranks;
  for (int rank = 0; rank == 0 || rank < ranks[0].ranks; ++rank) {
    const std::filesystem::path file = folder / file_name(rank);
    RankTimes times = parse_rank_times(read_file(file), file.string());
    if (times.rank != rank || (rank > 0 && times.ranks != ranks[0].ranks))
      throw InputError(file.string() + ": is of rank " + std::to_string(times.rank) + " of " +
                       std::to_string(times.ranks) + "; expected rank " + std::to_string(rank) + " of " +
                       std::to_string(rank == 0 ? times.ranks : ranks[0].ranks));
    ranks.push_back(std::move(times));
  }
  const size_t count =
      std::ranges::min(ranks, {}, [](const RankTimes& rank) { return rank.steps.size(); }).steps.size();
  std::vector<schedule::Trace> steps(count, {"measured", {}});
  bool any = false;
  for (size_t i = 0; i < count; ++i) {
    std::map<std::string, int> computed_by;
    for (RankTimes& rank : ranks) {
      for (TimedAction& timed : rank.steps[i]) {
        timed.begin *= kMilliseconds, timed.end *= kMilliseconds;
        const auto [other, is_first] = computed_by.emplace(to_string(timed.action), rank.rank);
        if (!is_first)
          throw InputError(folder.string() + ": step " + std::to_string(i) + ": ranks " +
                           std::to_string(other->second) + " and " + std::to_string(rank.rank) + " both have " +
                           other->first + "; record each replica of a pipeline into a folder of its own");
        any = true;
      }
      steps[i].ranks.push_back(std::move(rank.steps[i]));
    }
  }
  if (!any)
    throw InputError(folder.string() + ": no step with a computation that all ranks have; step_done() ends one");
  return steps;
}

double length_of(const schedule::Trace& step) {
  double begin = std::numeric_limits<double>::infinity(), end = -begin;
  for (const auto& rank : step.ranks)
    if (!rank.empty()) begin = std::min(begin, rank.front().begin), end = std::max(end, rank.back().end);
  return std::max(0.0, end - begin);
}

size_t median_step(const std::vector<schedule::Trace>& steps) {
  std::vector<size_t> order;
  for (size_t i = 0; i < steps.size(); ++i)
    if (std::ranges::any_of(steps[i].ranks, [](const auto& rank) { return !rank.empty(); })) order.push_back(i);
  std::ranges::stable_sort(order, {}, [&](size_t i) { return length_of(steps[i]); });
  return order.at((order.size() - 1) / 2);
}

}  // namespace plumbline::bench
