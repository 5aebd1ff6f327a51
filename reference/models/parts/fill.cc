#include "reference/models/parts/fill.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>
#include <vector>

#include "reference/models/parts/counter.h"
#include "runtime/error.h"

namespace plumbline::models {
namespace {

/// Writes value(index) for each row-major index; skips a tensor on the meta device, which has no memory.
template <class Value>
void fill(const at::Tensor& tensor, Value value) {
  if (tensor.is_meta()) return;
  const c10::NoGradGuard no_grad;
  const at::Tensor values = at::empty(tensor.sizes(), at::kDouble);
  double* out = values.mutable_data_ptr<double>();
  for (int64_t i = 0; i < values.numel(); ++i) out[i] = static_cast<double>(value(static_cast<uint64_t>(i)));
  tensor.copy_(values);
}

}  // namespace

void fill_uniform(const at::Tensor& tensor, uint64_t seed, std::string_view name, double lo, double hi) {
  const Counter counter(seed, name);
  fill(tensor, [&](uint64_t i) { return lo + (hi - lo) * counter.unit(i); });
}

void fill_normal(const at::Tensor& tensor, uint64_t seed, std::string_view name, double mean, double deviation) {
  const Counter counter(seed, name);
  fill(tensor, [&](uint64_t i) {
    const double radius = std::sqrt(-2.0 * std::log(1.0 - counter.unit(2 * i)));  // 1 - u is never 0
    return mean + deviation * radius * std::cos(2.0 * std::numbers::pi * counter.unit(2 * i + 1));
  });
}

void fill_integers(const at::Tensor& tensor, uint64_t seed, std::string_view name, int64_t lo, int64_t hi) {
  const Counter counter(seed, name);
  fill(tensor, [&](uint64_t i) { return lo + counter.below(i, hi - lo + 1); });
}

void fill_signed_integers(const at::Tensor& tensor, uint64_t seed, std::string_view name, int64_t max) {
  const Counter counter(seed, name);
  fill(tensor, [&](uint64_t i) {
    const int64_t drawn = counter.below(i, 2 * max) - max;  // -max .. max-1; zero and above shift up by one
    return drawn < 0 ? drawn : drawn + 1;
  });
}

void fill_sparse_vector(const at::Tensor& vector, uint64_t seed, std::string_view name, int64_t count, int64_t size) {
  const std::vector<int64_t> order = Counter(seed, std::string(name) + "/order").permutation(vector.numel());
  const Counter signs(seed, name);
  fill(vector, [&](uint64_t i) { return order[i] >= count ? 0 : signs.below(i, 2) ? size : -size; });
}

void fill_sparse_signs(const at::Tensor& matrix, uint64_t seed, std::string_view name, int64_t fan,
                       int64_t negative_one_in) {
  if (matrix.dim() != 2)
    throw InputError("fill_sparse_signs: " + std::string(name) + " has " + std::to_string(matrix.dim()) +
                     " dimensions, a matrix has 2");
  const int64_t rows = matrix.size(0), columns = matrix.size(1), side = std::min(rows, columns);
  if (side == 0 || rows % side || columns % side || fan < 1 || fan > side)
    throw InputError("fill_sparse_signs: " + std::string(name) + " is " + std::to_string(rows) + " x " +
                     std::to_string(columns) + " with fan " + std::to_string(fan) +
                     "; one side must divide the other, and fan be at most the shorter");
  // Each block is a circulant band of `fan` diagonals with shuffled rows and columns.
  std::vector<std::vector<int64_t>> row_orders, column_orders;
  const int64_t blocks = std::max(rows, columns) / side;
  for (int64_t block = 0; block < blocks; ++block) {
    const std::string stream = std::string(name) + "/" + std::to_string(block);
    row_orders.push_back(Counter(seed, stream + "/rows").permutation(side));
    column_orders.push_back(Counter(seed, stream + "/columns").permutation(side));
  }
  const Counter signs(seed, name);
  fill(matrix, [&](uint64_t i) {
    const int64_t row = static_cast<int64_t>(i) / columns, column = static_cast<int64_t>(i) % columns;
    const auto block = static_cast<size_t>(std::max(row, column) / side);
    const int64_t diagonal = column_orders[block][static_cast<size_t>(column % side)] -
                             row_orders[block][static_cast<size_t>(row % side)] + side;
    return diagonal % side >= fan ? 0 : signs.below(i, negative_one_in) ? 1 : -1;
  });
}

}  // namespace plumbline::models
