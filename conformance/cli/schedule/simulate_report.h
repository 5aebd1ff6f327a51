// What `plumbline simulate` prints: of one schedule all there is to know, of several a table.
#pragma once

#include <string>
#include <vector>

#include "runtime/schedule/simulation/lower_bound.h"
#include "runtime/schedule/simulation/simulation.h"
#include "runtime/schedule/simulation/what_if.h"

namespace plumbline::cli {

struct SimulatedStep {
  schedule::Schedule compute;
  schedule::Simulation simulation;  ///< its critical path is empty where the schedule is too large for one
  schedule::LowerBound bound;
  std::vector<schedule::Skip> skips;
  std::vector<std::string> scalings;      ///< as the user wrote them
  std::vector<schedule::WhatIf> changes;  ///< what each of them does
};

void print_text(const SimulatedStep& step);
void print_json(const SimulatedStep& step);

/// One of several schedules for the same model.
struct ComparedSchedule {
  std::string name;
  std::string refusal = {};  ///< why it cannot be had or cannot run; then there is nothing else
  int stages = 0;
  int microbatches = 0;
  schedule::Simulation simulation = {};
};

/// A row for each. `weight_share`: of a micro-batch's activations, held from I to W; `skipping`: tensors skip stages.
void print_comparison(const std::vector<ComparedSchedule>& compared, double weight_share, bool skipping);

/// A list of objects, whose peak_memory is that of the rank that holds most.
void print_comparison_json(const std::vector<ComparedSchedule>& compared);

}  // namespace plumbline::cli
