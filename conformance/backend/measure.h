// A rank's part of a measurement of speed, on stages that sleep or on a model of the zoo.
#pragma once

#include <string>

#include "conformance/protocol/job.h"
#include "runtime/transport/transport.h"

namespace plumbline::conformance {

/// Runs the measurement's steps. Returns this rank's times: the text of its file (throughput_path()). Every rank calls
/// it.
std::string measure_on_rank(const JobThroughput& item, const Job& job, transport::Transport& transport);

}  // namespace plumbline::conformance
