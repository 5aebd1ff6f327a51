// CUDA without linking LibTorch's library for it, which is loaded when a run asks for a device.
#pragma once

#include <c10/core/Device.h>
#include <c10/core/Stream.h>

#include <span>
#include <string>
#include <vector>

#include "runtime/transport/cuda/abi.h"

namespace plumbline::device {

/// Loads LibTorch's part for CUDA, chooses deterministic algorithms and exact float32 products (no TF32) for the whole
/// process, and initializes the devices. Repeated calls do nothing. Throws Error, with a remedy, if this LibTorch has
/// no such part, it cannot be loaded, or there is no device.
void require_cuda();

/// "cpu", or "cuda": its first device, after require_cuda().
c10::Device device_named(const std::string& name);

/// "NVIDIA H200", of the device with this number on this machine. Call after require_cuda().
std::string device_name(int index);
/// The same of all devices of this machine.
std::vector<std::string> device_names();

/// Throws Error unless all names, of devices on which ranks and the judge compute, are equal: kernels of different
/// devices sum in different orders, so that results which are compared bit for bit would differ.
void require_one_kind(std::span<const std::string> names);

/// The device for a report: "NVIDIA H200, driver 580.159.04, CUDA 13.0". Call after require_cuda().
std::string describe_cuda();

/// Makes this thread a rank that computes on a device: LibTorch's current device and stream are the rank's, and
/// autograd runs backwards on this thread, as on the CPU, instead of one thread that all ranks of a device share. The
/// destructor waits for the device and restores the thread.
class ComputesOn {
 public:
  /// `device`: its number; `compute`: a stream on it, which must outlive this object.
  ComputesOn(int device, transport::cuda::Stream compute);
  ~ComputesOn();
  ComputesOn(const ComputesOn&) = delete;
  ComputesOn& operator=(const ComputesOn&) = delete;

  c10::Device device() const { return device_; }

 private:
  c10::Device device_, device_before_;
  c10::Stream stream_before_;
  bool multithreading_before_;
};

}  // namespace plumbline::device
