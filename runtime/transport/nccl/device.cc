#include "runtime/transport/nccl/device.h"

#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "runtime/error.h"
#include "runtime/transport/collectives.h"
#include "runtime/transport/host_name.h"

namespace plumbline::transport::nccl {
namespace {

/// The place of this rank among those of its machine, whose number is `count`.
int local_index(Transport& control, const Deadline& deadline, int& count) {
  char host[256] = {};
  host_name().copy(host, sizeof host - 1);
  const auto hosts = gather_bytes(control, 0, std::as_bytes(std::span(host)), deadline);
  std::vector<std::byte> all;
  for (const auto& one : hosts) all.insert(all.end(), one.begin(), one.end());
  all = broadcast_bytes(control, 0, all, deadline);
  int index = 0;
  count = 0;
  for (int rank = 0; rank < control.size(); ++rank) {
    if (std::memcmp(all.data() + static_cast<size_t>(rank) * sizeof host, host, sizeof host) != 0) continue;
    index += rank < control.rank();
    ++count;
  }
  return index;
}

}  // namespace

void check_cuda(const Library& library, CudaError result, const char* call) {
  if (result != CudaError::Success) throw Error(std::string(call) + ": " + library.cuda_get_error_string(result));
}

void choose_device(const Library& library, Transport& control, const Deadline& deadline) {
  int ranks = 0, devices = 0;
  const int index = local_index(control, deadline, ranks);
  check_cuda(library, library.get_device_count(&devices), "cudaGetDeviceCount");
  if (devices == 0) throw Error("--transport nccl: there is no CUDA device on this machine");
  if (ranks > devices) {
    constexpr int kSharesDevices = 23000;
    const char* const shared = std::getenv("NCCL_MULTI_RANK_GPU_ENABLE");
    if (library.version < kSharesDevices || shared == nullptr || std::string(shared) != "1")
      throw Error("--transport nccl: " + std::to_string(ranks) + " ranks on a machine with " + std::to_string(devices) +
                  (devices == 1 ? " device" : " devices") +
                  " need NCCL 2.30 or newer and NCCL_MULTI_RANK_GPU_ENABLE=1; this is " + library.name() +
                  ". If each rank has a device of its own, let all ranks see all devices (CUDA_VISIBLE_DEVICES)");
  }
  check_cuda(library, library.set_device(index % devices), "cudaSetDevice");
}

}  // namespace plumbline::transport::nccl
