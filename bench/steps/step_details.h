// What a measurement of throughput tells beyond a step's time: its percentiles, the simulator's step from the measured
// durations, each rank's time by use, and its memory beside the plan's. Reads the files of the ranks; no torch.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "conformance/protocol/job.h"

namespace plumbline::bench {

struct RankDetails {
  /// Mean seconds of a step: in stages (of a model: with a processor), blocked until a message arrived or was sent,
  /// posting messages, and the rest.
  double busy = 0, waiting = 0, posting = 0, rest = 0;
  std::vector<int> cores;  ///< on which it may run
  /// Bytes of tensors in a step beyond those before it. Planned: by the liveness of the schedule's activations, each as
  /// large as what a stage's first forward leaves, and the rank's gradients. Unset for stages that sleep.
  std::optional<int64_t> peak = {}, planned_peak = {};
};

struct StepDetails {
  double p50 = 0, p95 = 0;  ///< seconds from the first rank's begin to the last one's end
  /// Seconds of the simulator's step, in which each computation takes the median of the measured ones of its stage and
  /// kind, and nothing else takes time.
  double simulated = 0;
  std::vector<RankDetails> ranks;

  /// 1: nothing but the schedule takes time.
  double efficiency() const { return simulated / p50; }
};

/// Reads what `ranks` ranks wrote about item `index` of a job. Throws Error for a missing or invalid file.
StepDetails read_step_details(const conformance::JobThroughput& item, size_t index, int ranks,
                              const std::filesystem::path& out);

/// A table with one row per measurement, in milliseconds; ranges are over the ranks.
std::string details_text(const std::vector<StepDetails>& details, const std::vector<conformance::JobThroughput>& items);

/// What shares the cores: the ranks among themselves, and other processes (OtherLoad). One line.
std::string cores_text(const StepDetails& details, unsigned cores, double others);

}  // namespace plumbline::bench
