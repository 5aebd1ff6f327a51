// Diagnoses a machine, or a backend's set-up: one step after the other, each in one line.
#pragma once

#include <iosfwd>
#include <string>

namespace plumbline::conformance {

/// The temporary folder, mpirun, more ranks than cores, LibTorch, CUDA, NCCL, Python. `nccl`: for
/// transport::nccl::parse_library_choice(); only if it is not empty must there be one. Returns the exit code: 1 when a
/// step failed.
int examine_machine(const std::string& nccl, std::ostream& out);

/// A backend as --backend names it, from its file to the first comparison of a result. Steps that depend on a failed
/// one are not tried.
int examine_backend(const std::string& given, std::ostream& out);

}  // namespace plumbline::conformance
