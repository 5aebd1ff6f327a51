#include "conformance/backend/rank_process.h"

#include <optional>
#include <utility>

#include "conformance/backend/load_nccl.h"
#include "runtime/transport/cuda/choose_device.h"
#include "runtime/transport/cuda/staged_transport.h"
#include "runtime/transport/nccl/nccl_transport.h"

namespace plumbline::conformance {

RankProcess::RankProcess(transport::Transport& mpi, TransportKind kind, const std::string& nccl,
                         const std::string& device, transport::Clock::duration timeout)
    : transport_(&mpi) {
  const transport::nccl::LibraryChoice choice = transport::nccl::parse_library_choice(nccl);
  std::optional<transport::nccl::Library> library;
  if (kind == TransportKind::Nccl) library = load_nccl(choice, device);
  if (device == "cuda") {
    device::require_cuda();
    cuda_ = transport::cuda::load_library("--device cuda");
    // Other ranks may still load LibTorch's part for CUDA, and start the driver, both of which rank 0 has done before.
    const int chosen =
        transport::cuda::choose_device(cuda_, mpi, transport::Deadline::patient(timeout), "--device cuda").device;
    transport::cuda::check(cuda_, cuda_.stream_create_with_flags(&compute_, transport::cuda::kStreamNonBlocking),
                           "cudaStreamCreate");
    computes_ = std::make_unique<device::ComputesOn>(chosen, compute_);
    staged_ = transport::cuda::staged_transport(mpi, cuda_, compute_, timeout);
    transport_ = staged_.get();
  }
  if (library) {
    nccl_ = transport::nccl::make_nccl_transport(std::move(*library), *transport_,
                                                 {.timeout = timeout, .headers = choice.headers, .compute = compute_});
    transport_ = nccl_.get();
  }
}

RankProcess::~RankProcess() {
  nccl_.reset();
  staged_.reset();
  computes_.reset();
  if (compute_ != nullptr) cuda_.stream_destroy(compute_);
}

}  // namespace plumbline::conformance
