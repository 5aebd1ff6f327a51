#include "reference/host_results.h"

namespace plumbline::reference {

TensorMap to_host(const Results& results) {
  TensorMap map;
  for (const auto& [key, tensor] : results) map.emplace(key, graph::to_host(tensor));
  return map;
}

}  // namespace plumbline::reference
