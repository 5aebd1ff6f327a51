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

/// What one rank measured.
struct RankDetails {
  // Mean seconds per measured step.
  double busy = 0;     ///< in stages: elapsed time of stages that sleep, processor time of a model's stages
  double waiting = 0;  ///< blocked until a message arrived or was sent
  double posting = 0;  ///< in posting messages
  double rest = 0;     ///< the step's duration on this rank minus the three above

  std::vector<int> cores;  ///< numbers of the host's cores on which the rank may run; empty: unknown

  // Bytes of tensors at their maximum in a step, beyond those before it. Unset for stages that sleep.
  std::optional<int64_t> peak = {};  ///< measured
  /// Bytes of the rank's gradients plus the simulator's peak, in which an activation has the bytes that the first
  /// forward of its stage left.
  std::optional<int64_t> planned_peak = {};
};

struct StepDetails {
  double p50 = 0, p95 = 0;  ///< percentiles of the steps' seconds, from the first rank's begin to the last one's end
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

/// Returns a line on what shares the cores: on which core each rank runs, or that ranks are not pinned, and the load by
/// other processes. `cores`: the number of cores of this machine. `other_load`: the share of all cores' time that other
/// processes took during the measurement, from 0 to 1 (OtherLoad::share()); the line has it in per cent.
std::string cores_text(const StepDetails& details, unsigned cores, double other_load);

}  // namespace plumbline::bench
