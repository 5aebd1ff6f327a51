#include "runtime/device/cuda.h"

#include <ATen/Context.h>
#include <c10/core/AutogradState.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <functional>
#include <mutex>

#include "runtime/error.h"
#include "runtime/graph/error_text.h"

namespace plumbline::device {
namespace {

c10::impl::VirtualGuardImpl guard() { return c10::impl::VirtualGuardImpl(c10::DeviceType::CUDA); }

/// A stream that LibTorch did not make has its address as its number (c10/cuda/CUDAStream.cpp).
c10::Stream stream_of(transport::cuda::Stream stream, c10::Device device) {
  return c10::Stream(c10::Stream::UNSAFE, device, static_cast<c10::StreamId>(reinterpret_cast<intptr_t>(stream)));
}

/// A function of a library that LibTorch's part for CUDA has loaded; null if there is none.
template <typename Function>
Function* find(const char* library, const char* symbol) {
  void* const handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  return handle == nullptr ? nullptr : reinterpret_cast<Function*>(dlsym(handle, symbol));
}

std::string driver_version() {
  const auto begin = find<int()>("libnvidia-ml.so.1", "nvmlInit_v2");
  const auto get = find<int(char*, unsigned)>("libnvidia-ml.so.1", "nvmlSystemGetDriverVersion");
  char version[128] = {};
  return begin != nullptr && begin() == 0 && get != nullptr && get(version, sizeof version) == 0 ? version : "unknown";
}

void load() {
  const std::string remedy =
      "--device cuda needs a LibTorch with CUDA and its libraries (cuBLAS, cuDNN, ...); PLUMBLINE_LIBTORCH=DIR names "
      "another LibTorch at set-up, and LD_LIBRARY_PATH the folders of the libraries";
  // cuBLAS reads it when a handle is made: without it products of several streams may differ from run to run.
  setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8", /*overwrite=*/0);
  // Local: the functions of the NCCL that it brings along must not take the place of those of another one.
  if (dlopen("libtorch_cuda.so", RTLD_NOW | RTLD_LOCAL) == nullptr) {
    const std::string problem = dlerror();
    // The dynamic linker has found an older one, or the process had loaded it before.
    if (problem.find("undefined symbol: nccl") != std::string::npos)
      throw Error(problem +
                  "; --device cuda: this LibTorch needs a newer NCCL than the libnccl.so.2 that it finds; name "
                  "the folder of its own first in LD_LIBRARY_PATH");
    throw Error(problem + "; " + remedy);
  }
  at::Context& context = at::globalContext();
  if (!at::Context::hasCUDA() || guard().deviceCount() == 0)
    throw Error("--device cuda: LibTorch finds no CUDA device; `nvidia-smi` lists those of the driver");
  try {
    context.lazyInitDevice(c10::DeviceType::CUDA);
  } catch (const std::exception& error) {
    throw Error("--device cuda: " + graph::error_text(error));
  }
  context.setDeterministicAlgorithms(/*enabled=*/true, /*warn_only=*/false);
  context.setDeterministicCuDNN(true);
  context.setBenchmarkCuDNN(false);
  context.setAllowTF32CuBLAS(false);
  context.setAllowTF32CuDNN(false);
  context.setAllowFP16ReductionCuBLAS(false);
  context.setAllowBF16ReductionCuBLAS(false);
}

}  // namespace

void require_cuda() {
  static std::once_flag once;
  std::call_once(once, load);
}

c10::Device device_named(const std::string& name) {
  if (name == "cpu") return c10::kCPU;
  PLUMBLINE_CHECK(name == "cuda", name);
  require_cuda();
  return {c10::DeviceType::CUDA, 0};
}

std::string device_name(int index) {
  const auto get = find<int(char*, int, int)>("libcuda.so.1", "cuDeviceGetName");
  char name[256] = {};
  return get != nullptr && get(name, sizeof name, index) == 0 ? name : "CUDA device";
}

std::vector<std::string> device_names() {
  std::vector<std::string> names;
  for (int i = 0; i < guard().deviceCount(); ++i) names.push_back(device_name(i));
  return names;
}

void require_one_kind(std::span<const std::string> names) {
  const auto other = std::ranges::adjacent_find(names, std::not_equal_to<>());
  if (other != names.end())
    throw Error("--device cuda: ranks would compute on " + *other + " and on " + *(other + 1) +
                ", whose results differ in their last bits; CUDA_VISIBLE_DEVICES must leave devices of one kind");
}

std::string describe_cuda() {
  const auto version = find<int(int*)>("libcuda.so.1", "cuDriverGetVersion");
  int number = 0;
  const bool known = version != nullptr && version(&number) == 0;
  return device_name(0) + ", driver " + driver_version() +
         (known ? ", CUDA " + std::to_string(number / 1000) + "." + std::to_string(number / 10 % 100) : "");
}

ComputesOn::ComputesOn(int device, transport::cuda::Stream compute)
    : device_(c10::DeviceType::CUDA, static_cast<c10::DeviceIndex>(device)),
      device_before_(guard().exchangeDevice(device_)),
      stream_before_(guard().exchangeStream(stream_of(compute, device_))),
      multithreading_before_(c10::AutogradState::get_tls_state().get_multithreading_enabled()) {
  c10::AutogradState::get_tls_state().set_multithreading_enabled(false);
}

ComputesOn::~ComputesOn() {
  c10::AutogradState::get_tls_state().set_multithreading_enabled(multithreading_before_);
  try {
    guard().synchronizeDevice(device_.index());
  } catch (const std::exception&) {
    // The rank has ended by that error already.
  }
  guard().exchangeStream(stream_before_);
  guard().uncheckedSetDevice(device_before_);
}

}  // namespace plumbline::device
