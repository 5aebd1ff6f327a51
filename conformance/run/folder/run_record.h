// run.json: the runs and options of a run, written before it begins, for `--resume` and `plumbline check`. No torch.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "conformance/plan/planned_run.h"

namespace plumbline::conformance {

/// The option that says whose results stay, and its value where those of passing runs are deleted.
inline constexpr const char* kKeepOption = "keep";
inline constexpr const char* kKeepFailures = "failures";

struct RunRecord {
  uint64_t seed = 1;
  int microbatches = 0;  ///< replaces the number of each case; 0: keeps it
  std::string backend;
  std::string describe;  ///< the backend's description, as JSON; empty: it was not asked
  /// Everything else on which results depend: version, commit, mutant, recompute, ...
  std::vector<std::pair<std::string, std::string>> options;
  std::vector<PlannedRun> runs;

  /// Whether the results of passing runs were deleted once judged.
  bool keeps_failures_only() const;
};

/// InputError when the place cannot be written.
void write_run_record(const std::filesystem::path& path, const RunRecord& record);
/// InputError of one line that names the file, the place in it and the accepted values.
RunRecord read_run_record(const std::filesystem::path& path);

/// The first difference of `now` from `earlier`, for people: "seed is 2, the interrupted run had 1"; empty when `now`
/// can resume it.
std::string difference(const RunRecord& earlier, const RunRecord& now);

}  // namespace plumbline::conformance
