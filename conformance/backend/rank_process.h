// A rank that is a process: how its tensors travel, and where it computes.
#pragma once

#include <c10/core/Device.h>

#include <memory>
#include <string>

#include "conformance/protocol/transport_kind.h"
#include "runtime/device/cuda.h"
#include "runtime/transport/cuda/library.h"
#include "runtime/transport/transport.h"

namespace plumbline::conformance {

class RankProcess {
 public:
  /// All ranks of `mpi` call it together; `mpi` must outlive this object. `nccl`: the library, as
  /// parse_library_choice() reads it; `device`: "cpu" or "cuda"; `timeout`: of each wait for other ranks. Throws Error
  /// if there is no such library or device.
  RankProcess(transport::Transport& mpi, TransportKind kind, const std::string& nccl, const std::string& device,
              transport::Clock::duration timeout);
  ~RankProcess();
  RankProcess(const RankProcess&) = delete;
  RankProcess& operator=(const RankProcess&) = delete;

  transport::Transport& transport() const { return *transport_; }
  c10::Device device() const { return computes_ ? computes_->device() : c10::kCPU; }

 private:
  transport::cuda::Library cuda_;
  transport::cuda::Stream compute_ = nullptr;
  std::unique_ptr<device::ComputesOn> computes_;
  std::unique_ptr<transport::Transport> staged_, nccl_;
  transport::Transport* transport_;
};

}  // namespace plumbline::conformance
