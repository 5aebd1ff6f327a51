// A rank's part of a measurement of speed, on stages that sleep or on a model of the zoo.
#pragma once

#include <filesystem>

#include "conformance/protocol/job.h"
#include "runtime/transport/transport.h"

namespace plumbline::conformance {

/// Runs the measurement's steps and writes this rank's times to `path`, as read_throughput() reads them. Every rank
/// calls it.
void measure_on_rank(const JobThroughput& item, const Job& job, transport::Transport& transport,
                     const std::filesystem::path& path);

}  // namespace plumbline::conformance
