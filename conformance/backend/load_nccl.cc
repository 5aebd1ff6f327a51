#include "conformance/backend/load_nccl.h"

#include <cstdlib>

#include "runtime/device/cuda.h"

namespace plumbline::conformance {

transport::nccl::Library load_nccl(const transport::nccl::LibraryChoice& choice, const std::string& device) {
  // Read when CUDA starts. A kernel that is loaded at its first use may wait for those that run, among them NCCL's,
  // which wait for other ranks. (CUDA's guide: lazy loading.)
  if (device == "cuda") setenv("CUDA_MODULE_LOADING", "EAGER", /*overwrite=*/0);
  // The stub has a name and CUDA functions of its own, and the caller may refuse it where there is no device.
  if (device == "cuda" && choice.library != "stub") device::require_cuda();
  return transport::nccl::load_library(choice);
}

}  // namespace plumbline::conformance
