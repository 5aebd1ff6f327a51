#include "conformance/backend/load_nccl.h"

#include "runtime/device/cuda.h"

namespace plumbline::conformance {

transport::nccl::Library load_nccl(const transport::nccl::LibraryChoice& choice, const std::string& device) {
  // The stub has a name and CUDA functions of its own, and the caller may refuse it where there is no device.
  if (device == "cuda" && choice.library != "stub") device::require_cuda();
  return transport::nccl::load_library(choice);
}

}  // namespace plumbline::conformance
