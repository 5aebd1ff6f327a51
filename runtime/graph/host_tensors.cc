#include "runtime/graph/host_tensors.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/view_as_real.h>

#include <cstring>

#include "runtime/error.h"
#include "runtime/graph/graph.h"
#include "runtime/types/aten.h"

namespace plumbline::graph {
namespace {

std::string file_dtype(const at::Tensor& tensor) {
  for (const types::DtypeInfo& info : types::dtypes())
    if (types::to_aten(info.dtype) == tensor.scalar_type() && !info.file_name.empty())
      return std::string(info.file_name);
  throw Error("a tensor " + describe(tensor) + " has an element type that tensor files do not hold");
}

}  // namespace

at::Tensor in_pairs(const at::Tensor& tensor) {
  return tensor.is_complex() ? at::view_as_real(tensor.resolve_conj()) : tensor;
}

HostTensor to_host(const at::Tensor& tensor) {
  if (tensor.layout() != at::kStrided || tensor.is_meta())
    throw Error("a tensor " + describe(tensor) + " is " + (tensor.is_meta() ? "a meta tensor" : "not dense") +
                "; tensor files hold dense ones");
  const at::Tensor data = with_own_values(tensor.detach().cpu()).contiguous();
  HostTensor host{file_dtype(data), data.sizes().vec(), std::vector<std::byte>(data.nbytes())};
  if (!host.data.empty()) std::memcpy(host.data.data(), data.const_data_ptr(), host.data.size());
  return host;
}

at::Tensor from_host(const HostTensor& host) {
  for (const types::DtypeInfo& info : types::dtypes()) {
    if (host.dtype != info.file_name) continue;
    at::Tensor tensor = at::empty(host.shape, types::to_aten(info.dtype));
    PLUMBLINE_CHECK(tensor.nbytes() == host.data.size(), describe(host));
    if (!host.data.empty()) std::memcpy(tensor.mutable_data_ptr(), host.data.data(), host.data.size());
    return tensor;
  }
  throw Error("a tensor " + describe(host) + " has an element type that LibTorch does not have");
}

}  // namespace plumbline::graph
