// The machine, build and environment of a run, for its report.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace plumbline::conformance {

/// Returns names and values in reading order: version, commit, dirty (whether the sources differed from the commit),
/// libtorch, compiler, hardware, date (UTC), then `more`, and last the command line.
std::vector<std::pair<std::string, std::string>> run_context(
    const std::string& command_line, const std::vector<std::pair<std::string, std::string>>& more);

/// Returns the environment variables of this process that can change results, measurements or the connections between
/// ranks: those of OpenMP, MKL, MPI, UCX, NCCL, CUDA, PyTorch, malloc and the dynamic linker, sorted by name.
std::vector<std::pair<std::string, std::string>> run_environment();

/// "0.1.0"
std::string plumbline_version();

}  // namespace plumbline::conformance
