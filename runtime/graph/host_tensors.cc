#include "runtime/graph/host_tensors.h"

#include <ATen/ops/empty.h>

#include <array>
#include <cstring>

#include "runtime/error.h"
#include "runtime/graph/graph.h"

namespace plumbline::graph {
namespace {

constexpr std::array<std::pair<at::ScalarType, const char*>, 13> kDtypes{{
    {at::kFloat, "F32"},
    {at::kDouble, "F64"},
    {at::kBFloat16, "BF16"},
    {at::kHalf, "F16"},
    {at::kLong, "I64"},
    {at::kInt, "I32"},
    {at::kShort, "I16"},
    {at::kChar, "I8"},
    {at::ScalarType::UInt64, "U64"},
    {at::ScalarType::UInt32, "U32"},
    {at::ScalarType::UInt16, "U16"},
    {at::kByte, "U8"},
    {at::kBool, "BOOL"},
}};

std::string file_dtype(const at::Tensor& tensor) {
  for (const auto& [type, name] : kDtypes)
    if (type == tensor.scalar_type()) return name;
  throw Error("a tensor " + describe(tensor) + " has an element type that tensor files do not hold");
}

}  // namespace

HostTensor to_host(const at::Tensor& tensor) {
  if (tensor.layout() != at::kStrided || tensor.is_meta())
    throw Error("a tensor " + describe(tensor) + " is " + (tensor.is_meta() ? "a meta tensor" : "not dense") +
                "; tensor files hold dense ones");
  const at::Tensor data = tensor.detach().cpu().resolve_conj().resolve_neg().contiguous();
  HostTensor host{file_dtype(data), data.sizes().vec(), std::vector<std::byte>(data.nbytes())};
  if (!host.data.empty()) std::memcpy(host.data.data(), data.const_data_ptr(), host.data.size());
  return host;
}

at::Tensor from_host(const HostTensor& host) {
  for (const auto& [type, name] : kDtypes) {
    if (host.dtype != name) continue;
    at::Tensor tensor = at::empty(host.shape, type);
    PLUMBLINE_CHECK(tensor.nbytes() == host.data.size(), describe(host));
    if (!host.data.empty()) std::memcpy(tensor.mutable_data_ptr(), host.data.data(), host.data.size());
    return tensor;
  }
  throw Error("a tensor " + describe(host) + " has an element type that LibTorch does not have");
}

}  // namespace plumbline::graph
