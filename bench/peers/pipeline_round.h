// One round of the comparison of pipeline steps: the ranks of one side execute steps of several schedules.
//
//   SIDE --microbatches M --threads N --steps S --out DIR MODEL SCHEDULE...
//
// SIDE is `mpirun -n P plumbline-bench peers step-round` or `PYTHON pipeline_steps.py --engine NAME --ranks P`. The
// layers of the model are divided evenly among the schedule's stages. A micro-batch is as MODEL says; inputs and
// targets of the batch are fill(sizes, 0, kLarge, 0) and fill(sizes, 1, kLarge, 0), the loss of a micro-batch is the
// sum of output * target, and gradients are sums over micro-batches. Each schedule gets three steps to warm up, then S
// measured ones; before each, a rank drops its gradients and waits at a barrier. Every rank writes, for each schedule,
//   DIR/SCHEDULE.RANK.json          of its measured steps, each from the barrier to this rank's end, the seconds and
//   the
//                                   processor time of all its threads: {"seconds": [], "processor_seconds": []}
//   DIR/SCHEDULE.RANK.safetensors   its stages' gradients after the last one, by the parameters' names in the model
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "bench/micro/filled_model.h"
#include "runtime/io/tensor_file.h"
#include "runtime/transport/transport.h"

namespace plumbline::bench {

struct PipelineRound {
  ModelShape model;
  std::vector<std::string> schedules;  ///< names of schedule_kinds.h
  int microbatches = 0, steps = 0;
};

/// The C++ side's part of one rank, with the number of threads set by at::set_num_threads(). Every rank calls it.
void run_pipeline_round(const PipelineRound& round, transport::Transport& transport, const std::filesystem::path& out);

struct MeasuredSteps {
  std::vector<double> seconds;    ///< by step: of the slowest rank
  std::vector<double> processor;  ///< by step: seconds of processor time of all ranks
  TensorMap gradients;            ///< of all ranks
};

/// What either side wrote about a schedule. Throws Error for missing or invalid files, ranks with different numbers of
/// steps, and a parameter with different gradients on two ranks: replicas have the sum over all of them.
MeasuredSteps read_steps(const std::filesystem::path& out, const std::string& schedule, int ranks);

/// The loss of a micro-batch.
at::Tensor sum_of_products(const at::Tensor& output, const at::Tensor& target);

}  // namespace plumbline::bench
