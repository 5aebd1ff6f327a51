#include "conformance/backend/rank_threads.h"

#include <utility>

#include "runtime/device/cuda.h"
#include "runtime/transport/cuda/device_copies.h"
#include "runtime/transport/threads/threads.h"

namespace plumbline::conformance {

void run_thread_ranks_on(const std::string& device, bool slow_copies, int ranks,
                         const std::function<void(transport::Transport&, c10::Device)>& body) {
  if (device == "cpu")
    return transport::run_thread_ranks(ranks, [&](transport::Transport& rank) { body(rank, c10::kCPU); });
  device::require_cuda();
  device::require_one_kind(device::device_names());
  transport::cuda::Library library = transport::cuda::load_library("--device cuda");
  if (slow_copies) library = transport::cuda::with_slow_copies(std::move(library));
  transport::cuda::DeviceCopies copies(std::move(library), ranks);
  transport::run_thread_ranks(
      ranks,
      [&](transport::Transport& rank) {
        const device::ComputesOn computes(copies.device_of(rank.rank()), copies.compute_stream(rank.rank()));
        body(rank, computes.device());
      },
      &copies);
}

}  // namespace plumbline::conformance
