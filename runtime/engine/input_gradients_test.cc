#include "runtime/engine/input_gradients.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

namespace plumbline::engine {
namespace {

/// Three micro-batches of 1, 2 and 1 rows, of which one or two get a gradient of their number.
TEST(WholeInputs, ASliceWithoutAGradientKeepsItsRows) {
  for (unsigned with = 1; with < 7; ++with) {
    SCOPED_TRACE("micro-batches with a gradient, in bits: " + std::to_string(with));
    const at::Tensor input = at::ones({4, 2}).requires_grad_();
    const std::vector<int64_t> rows = {1, 2, 1};
    microbatch::Microbatches batch;
    std::vector<at::Tensor> expected;
    int64_t row = 0;
    for (const int64_t count : rows) {
      batch.inputs.push_back({input.narrow(0, row, count)});
      row += count;
    }
    const WholeInputs whole({input}, {{.dim = 0}}, batch);
    for (size_t m = 0; m < rows.size(); ++m) {
      const bool has = (with >> m & 1) != 0;
      const double value = has ? 1.0 + static_cast<double>(m) : 0.0;
      expected.push_back(at::full({rows[m], 2}, value));
      if (has) batch.inputs[m][0].mutable_grad() = expected.back().clone();
    }
    whole.join_gradients();
    EXPECT_TRUE(at::equal(input.grad(), at::cat(expected)));
  }
}

}  // namespace
}  // namespace plumbline::engine
