// Judges the result files of one run's ranks, for `plumbline run` and for `plumbline check` alike.
#pragma once

#include <filesystem>
#include <vector>

#include "conformance/judge/judge.h"
#include "conformance/protocol/job.h"

namespace plumbline::conformance {

/// The properties of a run, besides its case and schedule, that decide how its files are judged.
struct RunConditions {
  int ranks = 1;
  int microbatches = 0;  ///< as in with_microbatches()
  bool foreign = false;  ///< by a backend other than our runtime: any subset of its ranks may have written files
  const BackendDescription* backend = nullptr;  ///< lists the kinds it delivers; none: every kind
};

/// The result files of one run's ranks in the folder of their group.
std::vector<std::filesystem::path> rank_files(const std::filesystem::path& group, const JobCase& item,
                                              const RunConditions& run);

/// Merges and judges the files. Status Error, with a one-line reason that names the file, if one is missing or cannot
/// be read.
Finding judge_files(Judge& judge, const std::filesystem::path& group, const JobCase& item, const RunConditions& run);

}  // namespace plumbline::conformance
