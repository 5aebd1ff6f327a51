// Measures how fast schedules run on a backend with the feature "throughput": for `run --throughput` and for `plumbline
// bench throughput`. No torch.
//
// Stages sleep (which measures the runtime itself) or are those of a model of the zoo. A rank is busy while its stages
// sleep, or while they have a processor. The times of sleeping stages are given for a rank: each of its two stages
// sleeps half as long. The ideal step of sleeping stages is the simulator's. That of a model is the longer of two lower
// bounds, from the busy times of the same run: the work spread evenly over the ranks, with the schedule's bubble; and
// the work of all ranks spread over the processors of this machine, which dominates where ranks outnumber them. The
// bubble of a schedule with backwards in halves depends on how long these take; for a model it is that of halves as
// long as a forward (ideal_bubble, simulate.h).
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "conformance/plan/model_facts.h"
#include "conformance/protocol/backend.h"
#include "conformance/protocol/schedule/chosen_schedule.h"
#include "conformance/report/report.h"
#include "runtime/schedule/trace.h"

namespace plumbline::conformance {

/// The schedules that are measured where the user names none.
inline constexpr const char* kMeasuredSchedules = "gpipe,1f1b,interleaved-1f1b,zb-h1,zb-v,dualpipe-v";

/// Each workload (JobThroughput without a schedule) under each of the schedules. What cannot be measured is left out,
/// with its reason in `left_out`: a schedule from a file, one without a backward, with more stages than the model has,
/// or that does not exist for these ranks and micro-batches.
std::vector<JobThroughput> measurements(std::span<const JobThroughput> workloads,
                                        std::span<const ChosenSchedule> schedules, int ranks, ModelFacts& models,
                                        std::vector<std::string>& left_out);

struct ThroughputRun {
  std::vector<Throughput> measured;  ///< by job.throughput; shorter after a failure; empty on other ranks than rank 0
  std::vector<std::vector<double>> steps;  ///< seconds of each measured step, by `measured`
  std::string failed;                      ///< in one line; empty: nothing
};

/// Runs job.throughput on the backend in one launch. Measurements with a trace get a timeline.
ThroughputRun measure_throughput(const Backend& backend, const Job& job, const std::filesystem::path& out);

/// The actions of each rank in the last step of a measurement that has been made, in milliseconds from the first one's
/// begin: as predicted_trace() has them, and as measured. Throws Error when a rank's file is missing or has no trace.
std::vector<schedule::Trace> measured_traces(const JobThroughput& item, size_t index, int ranks,
                                             const std::filesystem::path& out);

}  // namespace plumbline::conformance
