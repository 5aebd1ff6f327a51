// One rank of the runtime running a case: the engine behind the interface of a CaseSubject.
#pragma once

#include "conformance/backend/fault.h"
#include "reference/results.h"
#include "runtime/engine/stage/remat_options.h"
#include "runtime/engine/stage/stage_blocks.h"
#include "runtime/schedule/schedule.h"
#include "runtime/transport/transport.h"

namespace plumbline::conformance {

struct EngineCaseOptions {
  schedule::Schedule schedule;
  uint64_t seed = 0;
  transport::Clock::duration timeout = std::chrono::seconds(60);
  /// An injected fault; null: none. The caller applies Fault::transport.
  const Fault* fault = nullptr;
  engine::RecomputeOptions recompute = {};
  engine::RematOptions remat = {};
  c10::Device device = c10::kCPU;  ///< where this rank's stages compute
};

/// Runs this rank's part of a case and returns its results. Every rank of `transport` calls it.
reference::Results run_case_on_rank(const reference::Case& c, transport::Transport& transport,
                                    const EngineCaseOptions& options);

}  // namespace plumbline::conformance
