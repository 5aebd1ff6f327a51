// run.json: what a run set out to do, written before it begins. It is what `--resume` and `plumbline check` go by:
// which runs there should be, and with which options. No torch.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "conformance/plan/planned_run.h"

namespace plumbline::conformance {

struct RunRecord {
  uint64_t seed = 1;
  int microbatches = 0;  ///< in place of each case's own; 0: the case's own
  std::string backend;
  std::string describe;  ///< what it said about itself, as JSON; empty: it was not asked
  /// Everything else that results depend on: version, commit, mutant, recompute, ...
  std::vector<std::pair<std::string, std::string>> options;
  std::vector<PlannedRun> runs;
};

/// InputError when the place cannot be written.
void write_run_record(const std::filesystem::path& path, const RunRecord& record);
/// InputError of one line that names the file, the place in it and what would be accepted.
RunRecord read_run_record(const std::filesystem::path& path);

/// The first thing in which `now` differs from `earlier`, for people: "--seed is 2, the interrupted run had 1"; empty
/// when it goes on where that one ended.
std::string difference(const RunRecord& earlier, const RunRecord& now);

}  // namespace plumbline::conformance
