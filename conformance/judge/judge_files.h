// Judging what the ranks of one run left on disk: the same for the run that has just ended and for `plumbline check`.
#pragma once

#include <filesystem>
#include <vector>

#include "conformance/judge/judge.h"
#include "conformance/protocol/job.h"

namespace plumbline::conformance {

/// What else decides how the files of a run are judged.
struct RunConditions {
  int ranks = 1;
  int microbatches = 0;  ///< as in with_microbatches()
  bool foreign = false;  ///< by a backend that is not our runtime: any of its ranks may have written
  const BackendDescription* backend = nullptr;  ///< says what it delivers; none: everything
};

/// The files that the ranks of one run leave in the folder of their group.
std::vector<std::filesystem::path> rank_files(const std::filesystem::path& group, const JobCase& item,
                                              const RunConditions& run);

/// Status Error, with a reason of one line that names the file, when one of them is missing or cannot be read.
Finding judge_files(Judge& judge, const std::filesystem::path& group, const JobCase& item, const RunConditions& run);

}  // namespace plumbline::conformance
