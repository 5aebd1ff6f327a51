// One rank of a program's step: rank 0 cuts the program once and sends every rank its own stages, and all of them the
// batch.
#pragma once

#include "conformance/program/batch.h"
#include "conformance/program/prepare.h"
#include "conformance/protocol/chosen_schedule.h"
#include "runtime/engine/stage/remat_options.h"
#include "runtime/engine/stage/stage_blocks.h"
#include "runtime/tensor_file.h"
#include "runtime/transport/transport.h"

namespace plumbline::program {

/// What rank 0 knows before the step; the other ranks know nothing.
struct ProgramStep {
  PreparedProgram prepared;
  ProgramBatch batch;
  conformance::ChosenSchedule schedule;
  int ranks = 1;
  engine::RecomputeOptions recompute;
  engine::RematOptions remat;
  uint64_t seed = 0;
  double timeout_seconds = 60;
};

/// Every rank calls it; `step` is null but on rank 0. There it returns the results of all ranks: output.<m>.<i>,
/// loss.<m>, grad.<name> (divided by the number of micro-batches) and buffer.<name>; elsewhere nothing. Complex tensors
/// are given as pairs of real numbers along a last dimension. Gradients are
/// bit for bit those of the uncut program run on one micro-batch after the other, each after seeding the generator with
/// seed + micro-batch.
TensorMap run_step_on_rank(transport::Transport& transport, const ProgramStep* step);

}  // namespace plumbline::program
