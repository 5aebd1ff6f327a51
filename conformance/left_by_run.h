// What a run leaves in the folder of its report, and how that is judged: the same for the run that has just ended and
// for `plumbline check`, for cases and for models of a backend's own.
#pragma once

#include <filesystem>
#include <functional>
#include <vector>

#include "conformance/backend/job.h"
#include "conformance/judge.h"
#include "conformance/plan.h"
#include "conformance/protocol.h"

namespace plumbline {

struct LeftByRun {
  std::filesystem::path folder;
  std::vector<std::filesystem::path> files;  ///< of the run: those of a case are expected, of a model those there are
  std::vector<std::filesystem::path> baseline;  ///< of the run on one rank that a model's is held against
  /// Backend, device, ranks, transport, seconds and repro of the verdict are left to the caller.
  std::function<CaseVerdict()> judge;
};

/// Under what circumstances runs leave their files.
struct LeftWhere {
  std::filesystem::path report;
  int microbatches = 0;  ///< as in with_microbatches()
};

/// `judge` and `backend` outlive what is returned.
LeftByRun left_by(const LeftWhere& where, const JobCase& item, int ranks, TransportKind transport,
                  const BackendDescription& backend, Judge& judge);

}  // namespace plumbline
