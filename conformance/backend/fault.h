// Fault: decorators around the parts of one rank that inject one deliberate error. The engine does not know of faults.
// run_case_on_rank() (backend/engine_subject.h) installs every member of a fault that is not empty, except `transport`,
// which its caller installs.
//
// A fault reports each actual change (FaultSite::happens). A run that passes although its fault changed something
// missed the fault; a fault that changed nothing proves nothing about the case.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>

#include "reference/oracle/case_run.h"
#include "runtime/engine/engine.h"
#include "runtime/transport/transport.h"

namespace plumbline::conformance {

/// The rank into which a fault is injected. Case, schedule and counter must outlive the fault.
struct FaultSite {
  const reference::Case& of;
  const schedule::Schedule& schedule;
  uint64_t seed = 0;
  int rank = 0;
  std::atomic<int64_t>& happened;  ///< number of actual changes, by all ranks of the process

  int ranks() const { return static_cast<int>(schedule.ranks.size()); }
  int microbatches() const { return schedule.microbatches; }
  bool is_last_rank() const { return rank + 1 == ranks(); }
  void happens() const { ++happened; }
};

/// An empty member changes nothing. A decorator must not outlive `inner` if it receives it by reference.
struct Fault {
  std::function<void(schedule::Schedule&)> schedule = {};    ///< before the engine is made
  std::function<void(engine::EngineOptions&)> options = {};  ///< after all of them are set
  std::function<engine::PipeSource(engine::PipeSource inner)> pipes = {};
  std::function<std::unique_ptr<engine::StageRunner>(int stage, const split::StageState& state,
                                                     std::unique_ptr<engine::StageRunner> inner)>
      stage = {};
  /// Installed by the caller of run_case_on_rank().
  std::function<std::unique_ptr<transport::Transport>(transport::Transport& inner)> transport = {};
  std::function<std::unique_ptr<reference::CaseSubject>(reference::CaseSubject& inner)> steps = {};
  std::function<void(reference::SavedState&)> resumes = {};  ///< the state with which the case begins
  std::function<void(reference::Results&)> results = {};     ///< of the rank, after the last step
};

}  // namespace plumbline::conformance
