#include "runtime/transport/cuda/choose_device.h"

#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "runtime/error.h"
#include "runtime/transport/collectives.h"
#include "runtime/transport/machine/host_name.h"

namespace plumbline::transport::cuda {
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

DeviceOfRank choose_device(const Library& library, Transport& control, const Deadline& deadline,
                           const std::string& user) {
  DeviceOfRank chosen;
  const int index = local_index(control, deadline, chosen.ranks);
  chosen.devices = device_count(library);
  if (chosen.devices == 0) throw Error(user + ": there is no CUDA device on this machine");
  chosen.device = index % chosen.devices;
  check(library, library.set_device(chosen.device), "cudaSetDevice");
  return chosen;
}

}  // namespace plumbline::transport::cuda
