// The runs on one rank that a backend's own models on several ranks are compared with.
#pragma once

#include <map>
#include <string>
#include <utility>

#include "conformance/protocol/backend.h"
#include "conformance/run/session.h"

namespace plumbline::conformance {

class BaselineRuns {
 public:
  /// Runs on one rank what `plan` has; models all of whose runs `session` has judged are left out, and a baseline by
  /// which an earlier part of the run was judged stays as it is.
  BaselineRuns(const RunPlan& plan, const RunOptions& options, const Backend& backend, Session& session);

  using Outcome = std::pair<Status, std::string>;
  /// What becomes of the model's other runs: Pass, they can be judged; NotRun, the backend did not start, which has
  /// been told; else what happened on one rank, and why.
  Outcome of(const std::string& model) const;

 private:
  class Observer;
  std::map<std::string, Outcome> outcomes_;
};

}  // namespace plumbline::conformance
