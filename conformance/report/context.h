// The machine, build and environment of a run, for its report.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace plumbline::conformance {

/// Version, commit, whether it was dirty (changed since), LibTorch, compiler, hardware, date, `more`, and last the
/// command line.
std::vector<std::pair<std::string, std::string>> run_context(
    const std::string& command_line, const std::vector<std::pair<std::string, std::string>>& more);

/// The environment variables of this process that can change results, measurements or how ranks find each other: those
/// of OpenMP, MKL, MPI, UCX, NCCL, CUDA, PyTorch, malloc and the dynamic linker, sorted by name.
std::vector<std::pair<std::string, std::string>> run_environment();

/// "0.1.0"
std::string plumbline_version();

}  // namespace plumbline::conformance
