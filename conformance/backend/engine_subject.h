// run_case_on_rank(): executes one rank's part of a case with the engine.
#pragma once

#include "conformance/backend/fault.h"
#include "reference/results.h"
#include "runtime/engine/stage/remat_options.h"
#include "runtime/engine/stage/stage_blocks.h"
#include "runtime/schedule/schedule.h"
#include "runtime/transport/transport.h"

namespace plumbline::conformance {

struct EngineCaseOptions {
  schedule::Schedule schedule;  ///< for all ranks of the transport
  uint64_t seed = 0;            ///< of parameters, batches and random operators
  /// The limit of each single wait for a message.
  transport::Clock::duration timeout = std::chrono::seconds(60);
  /// An injected fault, not owned; null: none. The caller applies Fault::transport.
  const Fault* fault = nullptr;
  engine::RecomputeOptions recompute = {};
  engine::RematOptions remat = {};
  c10::Device device = c10::kCPU;  ///< where this rank's stages compute
};

/// Executes this rank's part of every step of the case, and returns the results of this rank's stages, on
/// options.device. All ranks of `transport` call it together, with the same case, schedule, seed and options of
/// recomputation. Throws InputError for a case or options that the engine refuses, and as the engine's steps do, such
/// as TimeoutError for a wait of more than options.timeout. The caller must then abort the other ranks.
reference::Results run_case_on_rank(const reference::Case& c, transport::Transport& transport,
                                    const EngineCaseOptions& options);

}  // namespace plumbline::conformance
