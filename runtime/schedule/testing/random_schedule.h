// For tests: random schedules that are valid by construction, and random mutations that mostly break them.
#pragma once

#include <random>
#include <string>
#include <vector>

#include "runtime/schedule/testing/schedule_judge.h"

namespace plumbline::testing {

struct RandomPipe {
  schedule::Schedule compute;
  std::vector<schedule::StageEdge> edges;
  bool forward_only = false;
};

struct RandomOptions {
  bool groups = false;    ///< some computations in groups of two or three
  bool replicas = false;  ///< sometimes two replicas of the model, each with its own placement
};

/// A compute schedule over up to 4 ranks, 6 stages (placed at random) and 5 micro-batches, with a chain of edges and
/// some that skip stages; each backward whole or in halves; built by running, at random, any action that can run.
RandomPipe random_pipe(std::mt19937& random, const RandomOptions& options = {});

/// Another order of the pipe's computations with sends, receives and some waits for sends, built in the same way, so
/// that receives are posted at random times; for some stages with UNSHARD, RESHARD, REDUCE_GRAD and WAIT_REDUCE_GRAD.
/// Valid with rendezvous sends, as long as no rank waits at a SEND.
schedule::Schedule random_lowered(const RandomPipe& pipe, std::mt19937& random, const RandomOptions& options = {});

/// One mutation: an action dropped, repeated, swapped with another or the next, moved to another rank, given another
/// micro-batch, stage or kind, or a group joined or split. Returns its description.
std::string mutate(schedule::Schedule& schedule, std::mt19937& random);

/// One swap within a rank, so that no action is missing or repeated; groups keep their positions and contain only
/// computations. Returns its description.
std::string swap_two(schedule::Schedule& schedule, std::mt19937& random);

/// All rows, each on its own line, for failure messages; an & joins an action to the next one.
std::string show(const schedule::Schedule& schedule, const std::vector<schedule::StageEdge>& edges);

/// The inverse of show, for rows such as "0F0 1F1& 0B0".
schedule::Schedule schedule_of(const std::vector<std::string>& rows, const std::vector<int>& rank_of_stage,
                               int microbatches);

}  // namespace plumbline::testing
