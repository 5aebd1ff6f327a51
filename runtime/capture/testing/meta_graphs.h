// Shared by tests of the meta device: captures one forward twice, on the CPU and on meta, and compares the two.
#pragma once

#include <ATen/core/Tensor.h>
#include <gtest/gtest.h>

#include <map>
#include <regex>

#include "runtime/graph/graph.h"
#include "runtime/graph/io/text.h"

namespace plumbline::testing {

/// The same tensor without memory.
inline at::Tensor meta_like(const at::Tensor& tensor) {
  return at::Tensor(tensor.detach()).to(at::kMeta).requires_grad_(tensor.requires_grad());
}

inline std::vector<at::Tensor> meta_like(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> out;
  for (const at::Tensor& tensor : tensors) out.push_back(meta_like(tensor));
  return out;
}

/// For each value the first value that shares its memory.
inline std::vector<size_t> memory_partition(const graph::Graph& graph) {
  std::map<int32_t, size_t> first;
  std::vector<size_t> partition;
  for (size_t v = 0; v < graph.values.size(); ++v)
    partition.push_back(graph.values[v].storage < 0 ? v : first.emplace(graph.values[v].storage, v).first->second);
  return partition;
}

inline void expect_same_graph(const graph::Graph& on_meta, const graph::Graph& on_cpu) {
  const std::regex meta("device \"meta\"");
  EXPECT_EQ(std::regex_replace(graph::to_text(on_meta), meta, "device \"cpu\""), graph::to_text(on_cpu));
  EXPECT_EQ(memory_partition(on_meta), memory_partition(on_cpu));
}

}  // namespace plumbline::testing
