// The stub's functions of NCCL. Communicators have two ranks; there are no groups and no collectives.
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "runtime/transport/nccl/stub/communicator.h"
#include "runtime/transport/nccl/stub/exported.h"
#include "runtime/transport/nccl/stub/modes.h"

using plumbline::transport::nccl::Communicator;
using plumbline::transport::nccl::Config;
using plumbline::transport::nccl::DataType;
using plumbline::transport::nccl::kMinVersion;
using plumbline::transport::nccl::Result;
using plumbline::transport::nccl::Stream;
using plumbline::transport::nccl::UniqueId;
namespace stub = plumbline::transport::nccl::stub;

struct ncclComm {
  std::shared_ptr<stub::StubCommunicator> shared;
};

namespace {

/// Why the last call of this thread was refused; empty if it was not.
thread_local std::string last_refusal, told_refusal;

Result refuse(const char* why) {
  last_refusal = why;
  return Result::InvalidUsage;
}

/// The demands of the sends that this thread has posted since its last release_deferred_sends().
thread_local std::vector<std::shared_ptr<stub::Demand>> sends_put_off;

Result post(bool is_send, void* memory, size_t count, DataType type, int peer, Communicator comm, Stream stream) {
  if (comm == nullptr || stream == nullptr || type != DataType::Uint8) return refuse("a null handle, or not ncclUint8");
  if (!stub::is_accessible(memory, count)) return refuse("the memory is neither of a device nor of cudaHostAlloc");
  last_refusal.clear();
  stub::Message message;
  message.is_send = is_send;
  message.memory = memory;
  message.bytes = count;
  if (stub::modes().late) message.demand = std::make_shared<stub::Demand>();
  if (is_send && message.demand != nullptr) sends_put_off.push_back(message.demand);
  return comm->shared->post(message, peer, stub::queue_of(stream));
}

}  // namespace

void plumbline::transport::nccl::stub::release_deferred_sends() {
  for (const auto& demand : std::exchange(sends_put_off, {})) demand->ask();
}

#pragma GCC visibility push(default)
extern "C" {

const char* plumblineNcclStubModes(const char* modes) {
  if (modes != nullptr) stub::set_modes(modes);
  return stub::modes().text.c_str();
}

Result ncclGetVersion(int* version) {
  *version = kMinVersion;
  return Result::Success;
}

const char* ncclGetErrorString(Result result) {
  switch (result) {
    case Result::Success:
      return "no error (stub of NCCL)";
    case Result::InProgress:
      return "in progress (stub of NCCL)";
    case Result::SystemError:
      return "system error (stub of NCCL)";
    case Result::InvalidUsage:
      return "invalid usage (stub of NCCL)";
    default:
      return "error (stub of NCCL)";
  }
}

const char* ncclGetLastError(Communicator comm) {
  if (comm != nullptr && last_refusal.empty()) return comm->shared->last_error();
  told_refusal = std::exchange(last_refusal, "");  // told once: the next failure has reasons of its own
  return told_refusal.c_str();
}

Result ncclGetUniqueId(UniqueId* id) {
  static std::atomic<int> count = 0;
  std::random_device random;
  std::memset(id->internal, 0, sizeof id->internal);
  std::snprintf(id->internal, sizeof id->internal, "/plumbline-nccl-stub-%d-%d-%08x", static_cast<int>(getpid()),
                count++, random());
  return Result::Success;
}

Result ncclCommInitRankConfig(Communicator* comm, int ranks, UniqueId id, int rank, Config* config) {
  if (ranks != 2 || rank < 0 || rank > 1) return refuse("the stub has communicators of two ranks only");
  if (config == nullptr || config->magic != Config().magic) return refuse("the configuration was not initialised");
  *comm = new ncclComm{std::make_shared<stub::StubCommunicator>(id.internal, rank, config->blocking != 0)};
  return (*comm)->shared->begin();
}

Result ncclCommGetAsyncError(Communicator comm, Result* state) {
  *state = comm->shared->state();
  return Result::Success;
}

Result ncclCommFinalize(Communicator comm) { return comm->shared->finalize(); }

Result ncclCommDestroy(Communicator comm) {
  delete comm;
  return Result::Success;
}

Result ncclCommAbort(Communicator comm) {
  comm->shared->abort();
  delete comm;
  return Result::Success;
}

Result ncclSend(const void* data, size_t count, DataType type, int peer, Communicator comm, Stream stream) {
  return post(/*is_send=*/true, const_cast<void*>(data), count, type, peer, comm, stream);
}

Result ncclRecv(void* data, size_t count, DataType type, int peer, Communicator comm, Stream stream) {
  return post(/*is_send=*/false, data, count, type, peer, comm, stream);
}

}  // extern "C"
#pragma GCC visibility pop
