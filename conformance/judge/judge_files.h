// Judges the result files that the ranks of one run wrote, for `plumbline run` and `plumbline check`.
#pragma once

#include <filesystem>
#include <vector>

#include "conformance/judge/judge.h"
#include "conformance/protocol/job.h"

namespace plumbline::conformance {

/// The properties of a run, besides its case and schedule, that determine how its files are judged.
struct RunConditions {
  int ranks = 1;
  int microbatches = 0;  ///< 0: the number of the case; see with_microbatches()
  bool foreign = false;  ///< the backend is not our runtime: any subset of its ranks may have written files
  /// Lists the kinds of results that the backend delivers, and is passed to demote() for a foreign backend. Null: every
  /// kind is delivered, and no case is demoted.
  const BackendDescription* backend = nullptr;
};

/// The result files of one run in `group`, the output folder of its job: the existing files of a foreign backend, also
/// those that belong to no rank, or one path for each rank of our runtime, whether or not the file exists.
std::vector<std::filesystem::path> rank_files(const std::filesystem::path& group, const JobCase& item,
                                              const RunConditions& run);

/// Merges and judges the files. The status is Error, with a one-line reason, if a file is missing, cannot be read, or
/// belongs to no rank, and for any other exception; it is Skipped if the truth is bounded, perhaps by a demotion, but
/// there are no bounds (Judge::why_unbounded()).
Finding judge_files(Judge& judge, const std::filesystem::path& group, const JobCase& item, const RunConditions& run);

}  // namespace plumbline::conformance
