// The output of `plumbline simulate`: all details of one schedule, or a table of several.
#pragma once

#include <string>
#include <vector>

#include "runtime/schedule/simulation/lower_bound.h"
#include "runtime/schedule/simulation/simulation.h"
#include "runtime/schedule/simulation/what_if.h"

namespace plumbline::cli {

struct SimulatedStep {
  schedule::Schedule compute;
  schedule::Simulation simulation;  ///< the critical path is empty if the schedule is too large for one
  schedule::LowerBound bound;
  std::vector<schedule::Skip> skips;
  std::vector<std::string> scalings;      ///< as the user wrote them
  std::vector<schedule::WhatIf> changes;  ///< the effect of each scaling
};

void print_text(const SimulatedStep& step);
void print_json(const SimulatedStep& step);

/// One of several schedules for the same model.
struct ComparedSchedule {
  std::string name;
  std::string refusal = {};  ///< why it cannot be made or simulated; the members below are then empty
  int stages = 0;
  int microbatches = 0;
  schedule::Simulation simulation = {};
};

/// Prints a row for each. `weight_share`: the share of a micro-batch's activations that is held from I to W;
/// `skipping`: some tensors skip stages.
void print_comparison(const std::vector<ComparedSchedule>& compared, double weight_share, bool skipping);

/// Prints a list of objects; peak_memory is that of the rank that holds most.
void print_comparison_json(const std::vector<ComparedSchedule>& compared);

}  // namespace plumbline::cli
