// The options of `plumbline schedule` and `plumbline simulate` that choose a schedule.
#pragma once

#include <CLI/CLI.hpp>

#include <optional>
#include <string>

#include "runtime/schedule/orders/schedule_kinds.h"

namespace plumbline::cli {

struct ScheduleChoice {
  std::string name;
  std::string dialect;                                                  ///< of a file; empty: not given
  schedule::ScheduleRequest request = {.ranks = 0, .microbatches = 0};  ///< 0: not given

  /// Whether the choice is a named schedule that uses this field of a request.
  bool takes(schedule::Takes field) const;

  /// Makes the named schedule, by default for 4 ranks and 8 micro-batches, or reads the file. Throws InputError.
  schedule::Schedule load() const;
};

/// `choice` must live as long as the command.
void add_schedule_options(CLI::App& command, ScheduleChoice& choice);

/// The computations of a schedule, without sends, receives and all other actions.
schedule::Schedule without_communication(schedule::Schedule schedule);

}  // namespace plumbline::cli
