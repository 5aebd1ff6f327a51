// One round of the comparison of pipeline steps: the ranks of one side execute steps of several schedules.
//
//   SIDE --microbatches M --threads N --steps S --out DIR MODEL SCHEDULE...
//
// SIDE is `mpirun -n P plumbline-bench peers step-round` or `PYTHON pipeline_steps.py --engine NAME --ranks P`. The
// layers of the model are divided evenly among the schedule's stages: their number must be a multiple of that of the
// stages. A micro-batch has the sizes of MODEL. Inputs and targets of the batch are fill(sizes, 0, kActivationExponent,
// 0) and fill(sizes, 1, kActivationExponent, 0), the loss of a micro-batch is the sum of output * target, and gradients
// are sums over micro-batches. Each schedule gets three steps to warm up, then S measured ones; before each, a rank
// drops its gradients and waits at a barrier. Every rank writes, for each schedule,
//
//   DIR/SCHEDULE.RANK.json          {"seconds": [], "processor_seconds": []}: for each measured step, the seconds from
//                                   the barrier to this rank's end of the step, and the seconds of processor time that
//                                   all threads of this rank took in between
//   DIR/SCHEDULE.RANK.safetensors   the gradients of its stages after the last step, by the names of the parameters in
//                                   the model
//
// measured_steps.h reads these files.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "bench/micro/filled_model.h"
#include "runtime/transport/transport.h"

namespace plumbline::bench {

struct PipelineRound {
  ModelShape model;
  std::vector<std::string> schedules;  ///< names of schedule_kinds.h
  int microbatches = 0, steps = 0;
};

/// Executes one rank's part of the C++ side, with the number of threads set by at::set_num_threads(), and writes its
/// files to `out`, which must exist. Every rank calls it. round.model.layers must be a multiple of the number of stages
/// of each schedule; not checked.
void run_pipeline_round(const PipelineRound& round, transport::Transport& transport, const std::filesystem::path& out);

/// The loss of a micro-batch.
at::Tensor sum_of_products(const at::Tensor& output, const at::Tensor& target);

}  // namespace plumbline::bench
