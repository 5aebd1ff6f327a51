// For tests: schedules at random that are valid by construction, and changes at random that mostly break them.
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
  bool replicas = false;  ///< sometimes two replicas of the model, each with a placement of its own
};

/// A compute schedule over up to 4 ranks, 6 stages (placed at random) and 5 micro-batches, with a chain of edges and
/// some that skip stages; each backward whole or in halves; made by running, at random, whatever can run.
RandomPipe random_pipe(std::mt19937& random, const RandomOptions& options = {});

/// Another order of the pipe's computations with sends, receives and some waits for sends, made in the same way, so
/// that receives are posted as early or as late as it happens; for some stages with UNSHARD, RESHARD, REDUCE_GRAD and
/// WAIT_REDUCE_GRAD. Valid with rendezvous sends, as long as no rank waits at a SEND.
schedule::Schedule random_lowered(const RandomPipe& pipe, std::mt19937& random, const RandomOptions& options = {});

/// One change: an action dropped, repeated, swapped with another or the next, moved to some rank, of another
/// micro-batch, stage or kind, or a group joined or split. Says in words which.
std::string mutate(schedule::Schedule& schedule, std::mt19937& random);

/// One change of the order on a rank only, so that nothing is missing or there twice; groups stay where they are and
/// keep to computations.
std::string swap_two(schedule::Schedule& schedule, std::mt19937& random);

/// All rows on lines of their own, for failure messages; an & joins an action to the next one.
std::string show(const schedule::Schedule& schedule, const std::vector<schedule::StageEdge>& edges);

/// The inverse of show, for rows such as "0F0 1F1& 0B0".
schedule::Schedule schedule_of(const std::vector<std::string>& rows, const std::vector<int>& rank_of_stage,
                               int microbatches);

}  // namespace plumbline::testing
