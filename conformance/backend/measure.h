// A rank's part of a measurement of speed, on stages that sleep or on a model of the zoo.
#pragma once

#include <string>

#include "conformance/protocol/job.h"
#include "runtime/transport/transport.h"

namespace plumbline::conformance {

/// Executes 3 steps to warm up, then `item.steps` measured ones, each after a barrier; of a model also one more, in
/// which memory is counted. Computes on the CPU. Every rank of `transport` calls it with the same `item` and `job`, of
/// which seed and timeout count. Returns the text of this rank's file (throughput_path()), one line of JSON:
///
///   steps      of each measured step: `begin` and `end` on the clock of rank 0's host; `busy`, in stages (elapsed time
///              if they sleep, processor time of this thread for a model); `waiting` (StepTimes); `posting` messages
///   trace      of each action of the last step: `action`, `overlaps_next`, `begin`, `end`; empty unless item.trace
///   durations  of each `stage` and `type` (F, B, I or W): the `median` of its actions in the measured steps
///   memory     null for stages that sleep; else in bytes: `peak`, the most bytes of tensors in the step beyond those
///              before it; `gradients` of this rank; `activations`, what the first forward of each `stage` leaves
///   cores      the numbers of the host's cores on which this rank may run
///
/// Times are in seconds. Throws InputError for an unknown schedule or model, and for a model that no case of the corpus
/// has; otherwise as the engine's steps and collectives do, such as TimeoutError for a wait of more than
/// job.timeout_seconds. The caller must then abort the other ranks.
std::string measure_on_rank(const JobThroughput& item, const Job& job, transport::Transport& transport);

}  // namespace plumbline::conformance
