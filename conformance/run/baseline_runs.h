// The runs on one rank with which a backend's custom models on several ranks are compared.
#pragma once

#include <map>
#include <string>
#include <utility>

#include "conformance/protocol/backend.h"
#include "conformance/run/session.h"

namespace plumbline::conformance {

class BaselineRuns {
 public:
  /// Runs the models of `plan` on one rank. Models whose runs `session` has all judged are left out; a baseline with
  /// which an interrupted run was compared is kept.
  BaselineRuns(const RunPlan& plan, const RunOptions& options, const Backend& backend, Session& session);

  using Outcome = std::pair<Status, std::string>;
  /// Pass: the model's other runs can be judged; NotRun: the backend did not start, which has been reported; else the
  /// failure on one rank, and its reason.
  Outcome of(const std::string& model) const;

 private:
  class Observer;
  std::map<std::string, Outcome> outcomes_;
};

}  // namespace plumbline::conformance
