#include "runtime/engine/stage/written_attributes.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/add.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>
#include <torch/nn/module.h>

#include "runtime/capture/capture.h"

namespace plumbline::engine {
namespace {

/// Writes one buffer whole, one through a view of a view, and reads a third.
struct Counting : torch::nn::Module {
  at::Tensor forward(const at::Tensor& x) {
    whole.add_(1);
    part.t().select(0, 1).mul_(2);
    return at::add(at::mul(x, whole), at::add(part, read));
  }
  at::Tensor whole = register_buffer("whole", at::zeros({2, 2}));
  at::Tensor part = register_buffer("part", at::ones({2, 2}));
  at::Tensor read = register_buffer("read", at::ones({2, 2}));
};

TEST(WrittenAttributes, AreThoseWhoseMemoryIsWrittenAlsoThroughAView) {
  Counting module;
  const graph::Graph graph = capture::capture(
      module, [&](const std::vector<at::Tensor>& in) { return std::vector<at::Tensor>{module.forward(in[0])}; },
      {{"x", at::ones({2, 2})}});
  const std::set<graph::ValueId> written = written_attributes(graph);
  std::set<std::string> names;
  for (const graph::Attribute& attribute : graph.attributes)
    if (written.contains(attribute.value)) names.insert(attribute.name);
  EXPECT_EQ(names, (std::set<std::string>{"part", "whole"}));
}

}  // namespace
}  // namespace plumbline::engine
