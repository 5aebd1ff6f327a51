#include "conformance/backend/host_tensors.h"

namespace plumbline {

TensorMap to_host(const Results& results) {
  TensorMap map;
  for (const auto& [key, tensor] : results) map.emplace(key, to_host(tensor));
  return map;
}

}  // namespace plumbline
