// Prints the output of `plumbline simulate` to stdout: all details of one schedule, or a table of several.
#pragma once

#include <string>
#include <vector>

#include "runtime/schedule/simulation/lower_bound.h"
#include "runtime/schedule/simulation/simulation.h"
#include "runtime/schedule/simulation/what_if.h"

namespace plumbline::cli {

struct SimulatedStep {
  schedule::Schedule compute;
  schedule::Simulation simulation;  ///< an empty critical path was not recorded
  schedule::LowerBound bound;       ///< of the makespan
  std::vector<schedule::Skip> skips;
  std::vector<std::string> scalings;      ///< the options --scale as the user wrote them
  std::vector<schedule::WhatIf> changes;  ///< the effect of each scaling, at the same index
};

void print_text(const SimulatedStep& step);
void print_json(const SimulatedStep& step);

/// One of several schedules for the same model.
struct ComparedSchedule {
  std::string name;
  std::string refusal = {};  ///< why it cannot be simulated; then the members below are unset
  int stages = 0;
  int microbatches = 0;
  schedule::Simulation simulation = {};
};

/// Prints one row for each schedule. `weight_share` is the share of a micro-batch's activations that is held from I to
/// W. `skipping` says that tensors skip stages, which adds an explanation.
void print_comparison(const std::vector<ComparedSchedule>& compared, double weight_share, bool skipping);

/// Prints a JSON list with one object for each schedule; its peak_memory is that of the rank that holds most.
void print_comparison_json(const std::vector<ComparedSchedule>& compared);

}  // namespace plumbline::cli
