// Reads the times of a training script's computations, as plumbline_times.py writes them, so that the steps of any
// engine can be examined as `bench throughput --gaps` examines those of ours.
//
// A folder has a file rank<R>.jsonl for each rank, of JSON lines. The first is {"schema": "plumbline-times/1", "rank":
// R, "ranks": N}; each other one is a step, a list of computations [ACTION, BEGIN, END]: an action's text, such as
// "0F2", and seconds of a clock that all ranks share. The computations of a rank do not overlap.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "runtime/schedule/trace.h"

namespace plumbline::bench {

struct RankTimes {
  int rank = 0, ranks = 1;
  std::vector<std::vector<schedule::TimedAction>> steps;  ///< each ascending by begin; in seconds
};

/// Parses one rank's file; `source` names it in errors. Throws InputError of one line for a text in another format.
RankTimes parse_rank_times(const std::string& text, const std::string& source);

/// Returns the steps that all ranks have, in milliseconds. Throws InputError of one line if a file is missing, cannot
/// be parsed or is of another run, if there is no step with a computation, or if two ranks have the same computation:
/// these are replicas of the pipeline, of which each is examined alone.
std::vector<schedule::Trace> read_step_times(const std::filesystem::path& folder);

/// Returns the time from the first begin to the last end, in the unit of the trace.
double length_of(const schedule::Trace& step);

/// Returns the index of the step of median length among those with a computation; of two in the middle the shorter one.
size_t median_step(const std::vector<schedule::Trace>& steps);

}  // namespace plumbline::bench
