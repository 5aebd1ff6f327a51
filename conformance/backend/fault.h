// Fault: what stands around one rank of a run, from outside, and does one thing wrong on purpose. The engine knows
// nothing of it. Whoever runs a case (backend/engine_subject.cc) puts in whatever is not empty.
//
// A fault says when it really changed something (FaultSite::happens). A run that passes although its fault happened has
// let it through; a fault that never happened says nothing about the case.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>

#include "reference/oracle/case_run.h"
#include "runtime/engine/engine.h"
#include "runtime/transport/transport.h"

namespace plumbline::conformance {

/// The rank that a fault stands around. Case, schedule and counter must outlive the fault.
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

/// What is empty is left alone.
struct Fault {
  std::function<void(schedule::Schedule&)> schedule = {};
  std::function<void(engine::EngineOptions&)> options = {};
  std::function<engine::PipeSource(engine::PipeSource inner)> pipes = {};
  std::function<std::unique_ptr<engine::StageRunner>(int stage, const split::StageState& state,
                                                     std::unique_ptr<engine::StageRunner> inner)>
      stage = {};
  /// What it makes refers to `inner`, as below.
  std::function<std::unique_ptr<transport::Transport>(transport::Transport& inner)> transport = {};
  std::function<std::unique_ptr<reference::CaseSubject>(reference::CaseSubject& inner)> steps = {};
  std::function<void(reference::Results&)> results = {};
};

}  // namespace plumbline::conformance
