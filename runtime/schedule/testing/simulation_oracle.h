// For tests: a slow simulator that shares only the argument types with simulation.h. Time advances in steps of 1, so
// all durations, latencies and bytes / bandwidth must be whole numbers.
#pragma once

#include <map>
#include <random>
#include <string>
#include <vector>

#include "runtime/schedule/simulation/costs.h"

namespace plumbline::testing {

struct SlowStep {
  bool deadlock = false;
  double makespan = 0;
  std::map<std::string, double> begin, end;  ///< by the text of an action; members of a group have the group's times
  std::vector<double> busy, peak_memory;     ///< per rank
};

SlowStep slow_step(const schedule::Schedule& compute, const std::vector<schedule::StageEdge>& edges,
                   const schedule::StepCosts& costs);

struct RandomStep {
  schedule::Schedule compute;
  std::vector<schedule::StageEdge> edges;
  schedule::StepCosts costs;
};

/// Up to 4 ranks, 6 stages, 5 micro-batches and 2 replicas, edges that skip stages, backwards whole, in halves or
/// absent, groups, activations that are offloaded, durations per stage, links that differ, in half of them tensors that
/// skip stages; with or without occupied links and few buffers. Complete, but groups and buffers may make ranks wait
/// for one another.
RandomStep random_step(std::mt19937& random);

}  // namespace plumbline::testing
