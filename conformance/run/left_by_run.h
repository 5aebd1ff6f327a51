// What a run leaves in the folder of its report, and how that is judged: the same for the run that has just ended and
// for `plumbline check`, for cases and for models of a backend's own.
#pragma once

#include <filesystem>
#include <vector>

#include "conformance/judge/judge.h"
#include "conformance/plan/plan.h"
#include "conformance/protocol/job.h"
#include "conformance/protocol/protocol.h"

namespace plumbline::conformance {

struct FinishedRun {
  std::filesystem::path report;
  int microbatches = 0;  ///< as in with_microbatches()
  JobCase item;
  int ranks = 1;
  TransportKind transport = TransportKind::Threads;
};

struct LeftByRun {
  std::filesystem::path folder;
  std::vector<std::filesystem::path> files;  ///< of the run: those of a case are expected, of a model those there are
  std::vector<std::filesystem::path> baseline;  ///< of the run on one rank that a model's is held against
};

LeftByRun left_by(const FinishedRun& run, const BackendDescription& backend);

/// Backend, device, ranks, transport, seconds and repro of the verdict are left to the caller.
CaseVerdict judge_left(const FinishedRun& run, const BackendDescription& backend, Judge& judge);

}  // namespace plumbline::conformance
