// Data parallelism around a pipeline: replicas of a whole schedule, each on ranks of its own with its own
// micro-batches.
//
// In a mesh of D x P ranks, rank d * P + p is rank p of replica d's pipeline. The gradients of a stage's parameters are
// summed over the ranks that hold the stage.
#pragma once

#include "runtime/schedule/schedule.h"

namespace plumbline::schedule {

/// `replicas` copies of `one`. Of P ranks and M micro-batches in `one`, copy d has the ranks from d * P and the
/// micro-batches from d * M. A schedule of several replicas of the model, such as dualpipe, is copied with all of them.
/// Throws InputError for replicas < 1, for a misshapen schedule (shape_problem), and for a mesh with more stages x
/// micro-batches, or more ranks with a copy of a stage, than kMostForwards.
Schedule data_parallel(const Schedule& one, int replicas);

/// The part of a mesh that one replica has: `whole` / `replicas`. Throws InputError, one line, if that is no whole
/// number; `what` names the number ("ranks", "micro-batches").
int part_of_replica(int whole, int replicas, const char* what);

}  // namespace plumbline::schedule
