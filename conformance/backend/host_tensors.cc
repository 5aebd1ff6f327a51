#include "conformance/backend/host_tensors.h"

#include <cstring>

#include "runtime/error.h"
#include "runtime/graph/graph.h"

namespace plumbline {
namespace {

std::string file_dtype(const at::Tensor& tensor) {
  switch (tensor.scalar_type()) {
    case at::kFloat:
      return "F32";
    case at::kDouble:
      return "F64";
    case at::kBFloat16:
      return "BF16";
    case at::kHalf:
      return "F16";
    case at::kLong:
      return "I64";
    case at::kInt:
      return "I32";
    case at::kShort:
      return "I16";
    case at::kChar:
      return "I8";
    case at::kByte:
      return "U8";
    case at::kBool:
      return "BOOL";
    default:
      throw Error("a result " + describe(tensor) + " has an element type that result files do not hold");
  }
}

}  // namespace

HostTensor to_host(const at::Tensor& tensor) {
  const at::Tensor data = tensor.detach().contiguous();
  HostTensor host{file_dtype(data), data.sizes().vec(), std::vector<std::byte>(data.nbytes())};
  if (!host.data.empty()) std::memcpy(host.data.data(), data.const_data_ptr(), host.data.size());
  return host;
}

TensorMap to_host(const Results& results) {
  TensorMap map;
  for (const auto& [key, tensor] : results) map.emplace(key, to_host(tensor));
  return map;
}

}  // namespace plumbline
