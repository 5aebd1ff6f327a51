// Measures how fast a schedule runs: on stages that sleep (what the runtime itself costs) or on a model of the zoo.
//
// A rank is busy while its stages sleep, or while they have a processor. Sleeping stages share the times that are given
// for a rank: with two stages each sleeps half as long. The ideal step of sleeping stages is what the simulator says.
// That of a model is the longer of two lower bounds, from the busy times measured in the same run: the work spread
// evenly over the ranks, with the schedule's bubble; and the work of all ranks spread over the processors of this
// machine, which is what counts where ranks outnumber them. The bubble of a schedule with halves of a backward depends
// on how long these take; for a model it is that of halves as long as a forward (ideal_bubble, simulate.h).
#pragma once

#include <filesystem>

#include "conformance/protocol/job.h"
#include "conformance/report/report.h"
#include "runtime/schedule/trace.h"
#include "runtime/transport/transport.h"

namespace plumbline::conformance {

/// Runs the measurement's steps and writes this rank's times to `path`. Every rank calls it.
void measure_on_rank(const JobThroughput& item, const Job& job, transport::Transport& transport,
                     const std::filesystem::path& path);

/// What the ranks of one measurement did when, in its last step: milliseconds from the first action's begin, named
/// "measured". Throws Error when a file is missing or has no trace (JobThroughput::trace).
schedule::Trace read_measured_trace(size_t index, int ranks, const std::filesystem::path& out);

/// Puts together what the ranks of one measurement wrote. Throws Error when a file is missing or cannot be read.
Throughput read_throughput(const JobThroughput& item, size_t index, int ranks, const std::filesystem::path& out);

}  // namespace plumbline::conformance
