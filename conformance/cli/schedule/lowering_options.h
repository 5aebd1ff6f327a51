// The options of `plumbline schedule` that say who adds sends and receives to a schedule, and how.
#pragma once

#include <CLI/CLI.hpp>

#include <string>
#include <vector>

#include "runtime/schedule/lowering/pytorch.h"

namespace plumbline::cli {

struct LoweringChoice {
  std::string by = "pytorch";  ///< or "engine"
  schedule::PytorchLowering pytorch;
  bool pytorch_knob_given = false;

  /// Throws InputError for a knob of PyTorch's beside by == "engine", and what the lowering itself refuses.
  schedule::Schedule lower(const schedule::Schedule& compute, const std::vector<schedule::StageEdge>& edges) const;
};

/// `choice` must live as long as the command.
void add_lowering_options(CLI::App& command, LoweringChoice& choice);

}  // namespace plumbline::cli
