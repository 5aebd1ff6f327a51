#include "conformance/cli/schedule/schedule_options.h"

#include "conformance/protocol/schedule/schedule_source.h"
#include "runtime/error.h"
#include "runtime/schedule/lowering/replica_actions.h"
#include "runtime/schedule/orders/data_parallel.h"
#include "runtime/text/join.h"

namespace plumbline::cli {

bool ScheduleChoice::takes(schedule::Takes field) const {
  const schedule::ScheduleKind* kind = schedule::find_schedule_kind(name);
  return kind != nullptr && (kind->takes & field) != 0;
}

schedule::Schedule ScheduleChoice::load() const {
  schedule::ScheduleRequest wanted = request;
  if (!conformance::is_schedule_file(name)) {
    if (wanted.ranks == 0) wanted.ranks = 4;
    if (wanted.microbatches == 0) wanted.microbatches = 8;
  }
  if (shard && replicas == 1) throw InputError("--shard goes with --replicas 2 or more, which divide the parameters");
  schedule::Schedule one = conformance::load_schedule(
      name, wanted, dialect.empty() ? std::nullopt : std::optional(schedule::parse_dialect(dialect)));
  if (replicas == 1) return one;
  schedule::Schedule mesh = schedule::data_parallel(one, replicas);
  if (schedule::has_communication(mesh)) return mesh;
  return schedule::with_replica_actions(mesh, {.reduce_early = schedule::has_backward(mesh), .shard = shard});
}

void add_schedule_options(CLI::App& command, ScheduleChoice& choice) {
  command.add_option("name", choice.name,
                     "A schedule by name (" + join(schedule::schedule_names()) +
                         "; `plumbline schedule --list` explains them), or a file that ends in .csv");
  command.add_option(
      "--dialect", choice.dialect,
      "The version of PyTorch whose text form a file uses: 2024 (B is the input half of a backward, BW the "
      "whole), 2.11 or 2.15 (default: those of 2.15)");
  command.add_option("--ranks", choice.request.ranks, "How many ranks (default: 4, or what the file has)")
      ->check(CLI::Range(1, 65536));
  command
      .add_option("--microbatches", choice.request.microbatches,
                  "How many micro-batches (default: 8, or what the file has)")
      ->check(CLI::Range(1, 1048576));
  command
      .add_option("--stages-per-rank", choice.request.stages_per_rank,
                  "How many stages each rank has (default: the usual number of the schedule)")
      ->check(CLI::Range(1, 65536));
  command
      .add_option("--group-size", choice.request.group_size,
                  "Micro-batches in a row for one stage, for interleaved-1f1b")
      ->check(CLI::Range(1, 1048576));
  command
      .add_option("--replicas", choice.replicas,
                  "Data-parallel replicas of the schedule, each with --ranks ranks and --microbatches micro-batches of "
                  "its own; their gradients are summed (REDUCE_GRAD) after the last backward of each stage")
      ->check(CLI::Range(1, 65536))
      ->capture_default_str();
  command.add_flag("--shard", choice.shard,
                   "The replicas divide the parameters of each stage, and gather them (UNSHARD) before its uses");
  command.add_option("--slices", choice.request.slices, "Parts of a sequence that depend on one another, for seq1f1b")
      ->check(CLI::Range(1, 65536));
  command
      .add_option("--memory-limit", choice.request.memory_limit,
                  "Maximum number of activations that a rank may hold, in micro-batches, for zb-auto and hanayo; "
                  "zb-auto counts the "
                  "share that is held from I to W (--weight-share of simulate) as the zero-bubble paper does: a half")
      ->check(CLI::PositiveNumber);
}

schedule::Schedule without_communication(schedule::Schedule schedule) {
  for (auto& actions : schedule.ranks) {
    std::erase_if(actions, [](const schedule::Action& action) {
      return !schedule::is_compute(action.type) && !schedule::is_offload(action.type);
    });
  }
  return schedule;
}

schedule::Schedule without_transport(schedule::Schedule schedule) {
  for (auto& actions : schedule.ranks) {
    std::erase_if(actions, [](const schedule::Action& action) {
      return schedule::has_microbatch(action.type) && !schedule::is_compute(action.type) &&
             !schedule::is_offload(action.type);
    });
  }
  return schedule;
}

}  // namespace plumbline::cli
