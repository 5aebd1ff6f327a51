// Where and with what a run was made, for its report.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace plumbline::conformance {

/// version, commit, whether it was dirty (changed since), LibTorch, compiler, hardware, date and the command line, with
/// `more` in between.
std::vector<std::pair<std::string, std::string>> run_context(
    const std::string& command_line, const std::vector<std::pair<std::string, std::string>>& more);

/// The variables of this process's environment that can change what is computed, what is measured or how ranks find
/// each other: those of OpenMP, MKL, MPI, UCX, NCCL, CUDA, PyTorch and the dynamic linker, by name.
std::vector<std::pair<std::string, std::string>> run_environment();

/// "0.1.0"
std::string plumbline_version();

}  // namespace plumbline::conformance
