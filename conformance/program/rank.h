// One rank of a program's step. Rank 0 cuts the program once, sends every rank its stages, and broadcasts the batch.
#pragma once

#include "conformance/program/batch.h"
#include "conformance/program/prepare.h"
#include "conformance/protocol/schedule/chosen_schedule.h"
#include "runtime/engine/stage/remat_options.h"
#include "runtime/engine/stage/stage_blocks.h"
#include "runtime/io/tensor_file.h"
#include "runtime/transport/transport.h"

namespace plumbline::program {

/// The description of a step. Only rank 0 has it; the other ranks receive their parts from rank 0.
struct ProgramStep {
  PreparedProgram prepared;
  ProgramBatch batch;
  conformance::ChosenSchedule schedule;
  int ranks = 1;
  engine::RecomputeOptions recompute;
  engine::RematOptions remat;
  uint64_t seed = 0;            ///< of random layers
  double timeout_seconds = 60;  ///< the longest wait for a message during the step
};

/// Executes the step; every rank of `transport` must call it. `step` is null except on rank 0. The step is a forward
/// only unless PreparedProgram::has_backward. A TimeoutError says who waited for whom (with_flight_log()).
///
/// Rank 0 returns the results of all ranks: output.<m>.<i> (output i of micro-batch m), loss.<m>, grad.<name> (divided
/// by the number of micro-batches) and buffer.<name>; the other ranks return an empty map. A complex tensor becomes a
/// real tensor with an additional last dimension of size 2. Throws Error, which names the result and both ranks (or
/// both stages of this rank), if the gradients or buffers of two copies differ, or only one has a gradient. With the
/// defaults of ProgramSplit, gradients are bit for bit those of the uncut program, executed on one micro-batch after
/// another with the generator seeded with seed + micro-batch.
///
/// `device`: where this rank computes.
TensorMap run_step_on_rank(transport::Transport& transport, const ProgramStep* step, c10::Device device = c10::kCPU);

}  // namespace plumbline::program
