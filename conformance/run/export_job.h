// A job for a foreign backend: its cases are exported beside the job file.
#pragma once

#include <filesystem>
#include <string>

#include "conformance/protocol/job.h"
#include "conformance/protocol/protocol.h"

namespace plumbline::conformance {

/// Writes a case of `job` below `out`, the folder of the job file, and sets its folder in `item`. `microbatches`
/// replaces the case's number (0: keeps it). Returns why the backend cannot take the case; empty when it can. Throws
/// WriteError if a file cannot be written.
std::string export_for_job(JobCase& item, const Job& job, int microbatches, const BackendDescription& backend,
                           const std::filesystem::path& out);

}  // namespace plumbline::conformance
