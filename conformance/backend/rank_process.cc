#include "conformance/backend/rank_process.h"

#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "conformance/backend/load_nccl.h"
#include "runtime/transport/collectives.h"
#include "runtime/transport/cuda/choose_device.h"
#include "runtime/transport/cuda/staged_transport.h"
#include "runtime/transport/nccl/nccl_transport.h"

namespace plumbline::conformance {
namespace {

/// The texts of all ranks, on each of them.
std::vector<std::string> gather_texts(transport::Transport& mpi, const std::string& mine,
                                      transport::Clock::duration timeout) {
  const transport::Deadline deadline = transport::Deadline::after(timeout);
  std::vector<std::string> texts;
  for (int rank = 0; rank < mpi.size(); ++rank) {
    const auto bytes = transport::broadcast_bytes(mpi, rank, std::as_bytes(std::span(mine)), deadline);
    texts.emplace_back(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  return texts;
}

}  // namespace

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
    device::require_one_kind(gather_texts(mpi, device::device_name(chosen), timeout));
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
