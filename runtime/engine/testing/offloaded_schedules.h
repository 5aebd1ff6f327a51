// For tests: schedules with OFFLOAD and RELOAD, derived from ones without.
#pragma once

#include <algorithm>
#include <functional>
#include <random>
#include <span>
#include <vector>

#include "runtime/schedule/schedule.h"

namespace plumbline::testing {

/// Offloads the activations of each stage and micro-batch that `which` selects, right after the F, and reloads them
/// right before the B or I.
inline schedule::Schedule offloaded(
    schedule::Schedule schedule, const std::function<bool(int stage, int m)>& which = [](int, int) { return true; }) {
  using enum schedule::ActionType;
  schedule.name += ", offloaded";
  for (std::vector<schedule::Action>& actions : schedule.ranks) {
    std::vector<schedule::Action> out;
    schedule::for_each_entry(actions, [&](std::span<const schedule::Action> entry) {
      for (const schedule::Action& action : entry)
        if (which(action.stage, action.microbatch) && (action.type == B || action.type == I))
          out.push_back({action.stage, RELOAD, action.microbatch});
      out.insert(out.end(), entry.begin(), entry.end());
      for (const schedule::Action& action : entry)
        if (which(action.stage, action.microbatch) && action.type == F)
          out.push_back({action.stage, OFFLOAD, action.microbatch});
    });
    actions = std::move(out);
  }
  return schedule;
}

/// At random places: between F and B or I, or between I and W; for about two thirds of the stages and micro-batches.
inline schedule::Schedule offloaded_at_random(schedule::Schedule schedule, std::mt19937& random) {
  using enum schedule::ActionType;
  schedule.name += ", offloaded at random";
  for (std::vector<schedule::Action>& actions : schedule.ranks)
    for (int stage = 0; stage < schedule.stages; ++stage)
      for (int m = 0; m < schedule.microbatches; ++m) {
        const auto find = [&](schedule::ActionType type) {
          return std::find_if(actions.begin(), actions.end(),
                              [&](const schedule::Action& a) {
                                return a.stage == stage && a.type == type && a.microbatch == m;
                              }) -
                 actions.begin();
        };
        const auto end = std::ssize(actions);
        const bool between = find(I) < end && random() % 2 == 0;
        const auto first = find(between ? I : F), last = between ? find(W) : std::min(find(I), find(B));
        if (first == end || last == end || random() % 3 == 0) continue;
        std::vector<std::ptrdiff_t> places;
        for (auto i = first + 1; i <= last; ++i)
          if (!actions[i - 1].overlaps_next) places.push_back(i);
        auto away = places[random() % places.size()], back = places[random() % places.size()];
        if (back < away) std::swap(away, back);
        actions.insert(actions.begin() + back, {stage, RELOAD, m});
        actions.insert(actions.begin() + away, {stage, OFFLOAD, m});
      }
  return schedule;
}

}  // namespace plumbline::testing
