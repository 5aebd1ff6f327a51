// A job for a backend that has nothing but files: its cases exported beside it.
#pragma once

#include <filesystem>
#include <string>

#include "conformance/protocol/job.h"
#include "conformance/protocol/protocol.h"

namespace plumbline::conformance {

/// Writes a case of `job` below `out`, the folder of the job file, and says in `item` where. `microbatches` is in place
/// of the case's own number (0: its own). Returns why the backend cannot be given it; empty when it can.
std::string export_for_job(JobCase& item, const Job& job, int microbatches, const BackendDescription& backend,
                           const std::filesystem::path& out);

}  // namespace plumbline::conformance
