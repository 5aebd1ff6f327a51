// For tests of the simulation: random steps, a schedule with its stage edges and costs.
#pragma once

#include <random>
#include <vector>

#include "runtime/schedule/simulation/costs.h"

namespace plumbline::testing {

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
