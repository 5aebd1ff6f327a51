// The options of `plumbline schedule` that choose how sends and receives are added to a schedule.
#pragma once

#include <CLI/CLI.hpp>

#include <string>
#include <vector>

#include "runtime/schedule/lowering/pytorch.h"

namespace plumbline::cli {

struct LoweringChoice {
  std::string by = "pytorch";  ///< or "engine"
  schedule::PytorchLowering pytorch;
  bool pytorch_knob_given = false;  ///< the user gave an option of PyTorch's lowering

  /// Adds sends and receives to `compute`, a compute schedule whose stages are connected by `edges`. Throws InputError
  /// if an option of PyTorch's lowering is given with by == "engine", or if the lowering refuses the schedule.
  schedule::Schedule lower(const schedule::Schedule& compute, const std::vector<schedule::StageEdge>& edges) const;
};

/// Parsing writes to `choice`, which must live as long as the command.
void add_lowering_options(CLI::App& command, LoweringChoice& choice);

}  // namespace plumbline::cli
