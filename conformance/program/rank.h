// One rank of a program's step. Rank 0 cuts the program once, sends every rank its stages, and broadcasts the batch.
#pragma once

#include "conformance/program/batch.h"
#include "conformance/program/prepare.h"
#include "conformance/protocol/chosen_schedule.h"
#include "runtime/engine/stage/remat_options.h"
#include "runtime/engine/stage/stage_blocks.h"
#include "runtime/io/tensor_file.h"
#include "runtime/transport/transport.h"

namespace plumbline::program {

/// The description of a step. Only rank 0 has it before the step.
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

/// Collective. `step` is null on all ranks but rank 0, which returns the results of all ranks: output.<m>.<i>,
/// loss.<m>, grad.<name> (divided by the number of micro-batches) and buffer.<name>. The other ranks return an empty
/// map. Complex tensors become pairs of real numbers along a last dimension. Gradients are bit for bit those of the
/// uncut program, executed on one micro-batch after another, each after seeding the generator with seed + micro-batch.
TensorMap run_step_on_rank(transport::Transport& transport, const ProgramStep* step);

}  // namespace plumbline::program
