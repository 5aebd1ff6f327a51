// Fault: decorates one rank of a run from outside and does one thing wrong on purpose; the engine does not know of it.
// engine_subject.cc applies every member that is not empty.
//
// A fault reports each change that it made (FaultSite::happens). A run that passes although its fault happened missed
// it; a fault that never happened proves nothing about the case.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>

#include "reference/oracle/case_run.h"
#include "runtime/engine/engine.h"
#include "runtime/transport/transport.h"

namespace plumbline::conformance {

/// The rank that a fault decorates. Case, schedule and counter must outlive the fault.
struct FaultSite {
  const reference::Case& of;
  const schedule::Schedule& schedule;
  uint64_t seed = 0;
  int rank = 0;
  std::atomic<int64_t>& happened;  ///< shared by the ranks of a process

  int ranks() const { return static_cast<int>(schedule.ranks.size()); }
  int microbatches() const { return schedule.microbatches; }
  bool is_last_rank() const { return rank + 1 == ranks(); }
  void happens() const { ++happened; }
};

/// An empty member changes nothing.
struct Fault {
  std::function<void(schedule::Schedule&)> schedule = {};
  std::function<void(engine::EngineOptions&)> options = {};
  std::function<engine::PipeSource(engine::PipeSource inner)> pipes = {};
  std::function<std::unique_ptr<engine::StageRunner>(int stage, const split::StageState& state,
                                                     std::unique_ptr<engine::StageRunner> inner)>
      stage = {};
  /// The result refers to `inner`; so does that of `steps`.
  std::function<std::unique_ptr<transport::Transport>(transport::Transport& inner)> transport = {};
  std::function<std::unique_ptr<reference::CaseSubject>(reference::CaseSubject& inner)> steps = {};
  std::function<void(reference::Results&)> results = {};
};

}  // namespace plumbline::conformance
