// Backends that run only models of their own (CaseLevel::Own): what of them is run, on how many ranks, and the runs on
// one rank that all of this is held against.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <utility>

#include "conformance/judge/verdict.h"
#include "conformance/plan/plan.h"
#include "conformance/protocol/launch.h"
#include "conformance/protocol/protocol.h"

namespace plumbline::conformance {

class Session;

/// The models that --case chooses, under each of the backend's schedules that --schedule chooses, on --ranks ranks:
/// where no number is given on 2, 4 and 8, or on 4 where --case is, as many of these as the backend's file allows, or
/// else on its largest. Throws InputError for patterns without a match, one rank, a file that does not allow one rank,
/// and options that are about cases.
RunPlan plan_own_models(const RunOptions& options, const BackendDescription& backend);

/// Where the recordings lie in a report's folder: that of a model's run on one rank, and that of another run.
std::filesystem::path one_rank_recording(const std::filesystem::path& report, const std::string& model);
std::filesystem::path recording_of(const std::filesystem::path& report, const JobCase& item, int ranks);

/// The runs on one rank of what `plan` has; those of models all of whose runs `session` has judged are left out, and
/// one that an earlier part of the run was judged by stays as it is.
class OneRankRuns {
 public:
  OneRankRuns(const RunPlan& plan, const RunOptions& options, const Launcher& launcher, Session& session);

  using Outcome = std::pair<Status, std::string>;
  /// What becomes of the model's other runs: Pass, they can be judged; NotRun, the backend did not start, which has
  /// been told; else what happened on one rank, and why.
  Outcome of(const std::string& model) const;

 private:
  class Observer;
  std::map<std::string, Outcome> outcomes_;
};

}  // namespace plumbline::conformance
