// Diagnoses a machine, or a backend's set-up: one step after the other, each in one line.
#pragma once

#include <iosfwd>
#include <string>

namespace plumbline::conformance {

/// Examines the temporary folder, open files, mpirun, more ranks than cores, LibTorch, CUDA, NCCL and Python. `nccl`:
/// for transport::nccl::parse_library_choice(); if it is not empty, a missing NCCL is a failure. Returns the exit code:
/// 1 when a step failed.
int examine_machine(const std::string& nccl, std::ostream& out);

/// Examines a backend as --backend names it, from its file to the first comparison of a result. Steps that depend on a
/// failed one are not tried. Returns the exit code.
int examine_backend(const std::string& given, std::ostream& out);

}  // namespace plumbline::conformance
