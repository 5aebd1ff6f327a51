// The options of `plumbline schedule` and `plumbline simulate` that say which schedule is meant.
#pragma once

#include <CLI/CLI.hpp>

#include <optional>
#include <string>

#include "runtime/schedule/orders/generators.h"

namespace plumbline::cli {

struct ScheduleChoice {
  std::string name;
  std::string dialect;                                                  ///< of a file; empty: not said
  schedule::ScheduleRequest request = {.ranks = 0, .microbatches = 0};  ///< 0: not said

  /// Whether it is a schedule by name that has a use for that field of a request.
  bool takes(schedule::Takes field) const;

  /// What is there by that name, or in that file; 4 ranks and 8 micro-batches where a name comes without.
  schedule::Schedule load() const;
};

/// `choice` must live as long as the command.
void add_schedule_options(CLI::App& command, ScheduleChoice& choice);

/// The computations of a schedule, whose sends, receives and all else are left out.
schedule::Schedule without_communication(schedule::Schedule schedule);

}  // namespace plumbline::cli
