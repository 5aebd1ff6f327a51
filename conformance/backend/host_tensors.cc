#include "conformance/backend/host_tensors.h"

namespace plumbline::conformance {

TensorMap to_host(const reference::Results& results) {
  TensorMap map;
  for (const auto& [key, tensor] : results) map.emplace(key, graph::to_host(tensor));
  return map;
}

}  // namespace plumbline::conformance
