// The options of `plumbline schedule` and `plumbline simulate` that choose a schedule.
#pragma once

#include <CLI/CLI.hpp>

#include <optional>
#include <string>

#include "runtime/schedule/orders/schedule_kinds.h"

namespace plumbline::cli {

/// The user's choice: a schedule by name with its parameters, or a CSV file.
struct ScheduleChoice {
  std::string name;     ///< of a schedule or of a .csv file
  std::string dialect;  ///< of a file's text, see schedule::parse_dialect(); empty: not given
  schedule::ScheduleRequest request = {.ranks = 0, .microbatches = 0};  ///< 0: not given; `name` is unused
  int replicas = 1;    ///< data-parallel replicas, each with the ranks and micro-batches of `request`
  bool shard = false;  ///< the replicas divide the parameters among them

  /// Whether `name` is a schedule's name and that schedule uses this field of a request; false for a file.
  bool takes(schedule::Takes field) const;

  /// Makes the named schedule, by default for 4 ranks and 8 micro-batches, or reads the file. With several replicas, a
  /// compute schedule also gets the actions with which they share parameters and gradients. Throws InputError for an
  /// unknown name or dialect, an invalid file, numbers that the schedule or file refuses, and `shard` without replicas.
  schedule::Schedule load() const;
};

/// Parsing writes to `choice`, which must live as long as the command.
void add_schedule_options(CLI::App& command, ScheduleChoice& choice);

/// The schedule with its computations (F, B, I, W), OFFLOAD and RELOAD only.
schedule::Schedule without_communication(schedule::Schedule schedule);
/// The schedule without its transfers.
schedule::Schedule without_transport(schedule::Schedule schedule);

}  // namespace plumbline::cli
