// For tests: tensors of results, written out.
#pragma once

#include <cstring>
#include <utility>
#include <vector>

#include "runtime/io/tensor_file.h"

namespace plumbline::testing {

inline HostTensor f32(std::vector<int64_t> shape, const std::vector<float>& values) {
  HostTensor tensor{"F32", std::move(shape), std::vector<std::byte>(values.size() * 4)};
  std::memcpy(tensor.data.data(), values.data(), tensor.data.size());
  return tensor;
}

}  // namespace plumbline::testing
