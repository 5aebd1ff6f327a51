// NCCL beside LibTorch's part for CUDA, which brings along an NCCL of its own.
#pragma once

#include <string>

#include "runtime/transport/nccl/library.h"

namespace plumbline::conformance {

/// Loads NCCL for ranks that compute on `device`, "cpu" or "cuda". With "cuda" LibTorch's part for CUDA comes first:
/// the dynamic linker takes any loaded libnccl.so.2 for the one that this part needs, also one that lacks its
/// functions. A file that the choice names by its path then lies beside LibTorch's; a bare name is LibTorch's. Throws
/// Error if either is absent, as require_cuda() and transport::nccl::load_library() do.
transport::nccl::Library load_nccl(const transport::nccl::LibraryChoice& choice, const std::string& device);

}  // namespace plumbline::conformance
