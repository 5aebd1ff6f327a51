// The runtime as a backend: carries out a job, rank by rank, and leaves what each rank says in files.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "conformance/protocol/job.h"
#include "runtime/transport/transport.h"

namespace plumbline::conformance {

/// What rank 0 tells whoever started the job, one line at a time (on standard output for a supervisor):
/// "case N begins", "case N done", "throughput N begins", "throughput N done".
using JobProgress = std::function<void(const std::string& line)>;

/// This rank's part of every case and measurement of the job, in order. A case is done when every rank has written its
/// file. After an exception the other ranks have been aborted with its reason.
void run_job_on_rank(const Job& job, transport::Transport& transport, const std::filesystem::path& out,
                     const JobProgress& progress);

/// Runs the job with its ranks as threads of this process.
void run_job_on_threads(const Job& job, const std::filesystem::path& out, const JobProgress& progress);

}  // namespace plumbline::conformance
