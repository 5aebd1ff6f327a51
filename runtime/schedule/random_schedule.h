// For tests: schedules at random that are valid by construction, and a slow judge of any schedule.
#pragma once

#include <random>
#include <string>
#include <vector>

#include "runtime/schedule/schedule.h"

namespace plumbline::testing {

struct RandomPipe {
  Schedule compute;
  std::vector<StageEdge> edges;
  bool forward_only = false;
};

/// A compute schedule over up to 4 ranks, 6 stages (placed at random) and 5 micro-batches, with a chain of edges and
/// some that skip stages; each backward whole or in halves; made by running, at random, whatever can run.
RandomPipe random_pipe(std::mt19937& random);

/// Whether the schedule, lowered or not, is complete and runs to its end with rendezvous sends: by trying every rank
/// again and again over sets of texts. Shares no code with check.h or replay.h.
bool runs_to_its_end(const Schedule& schedule, const std::vector<StageEdge>& edges, bool forward_only, bool lowered);

/// All rows on lines of their own, for failure messages.
std::string show(const Schedule& schedule, const std::vector<StageEdge>& edges);

}  // namespace plumbline::testing
