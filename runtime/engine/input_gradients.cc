#include "runtime/engine/input_gradients.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/add.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <utility>

namespace plumbline::engine {
namespace {

bool is_leaf_with_gradient(const at::Tensor& input) {
  return input.defined() && input.requires_grad() && input.is_leaf();
}

}  // namespace

void stash_inputs(const std::vector<std::string>& names, const microbatch::Microbatches& batch, GradientStash& stash) {
  for (const std::vector<at::Tensor>& inputs : batch.inputs)
    for (size_t i = 0; i < inputs.size(); ++i)
      if (is_leaf_with_gradient(inputs[i])) stash.add(names[i], inputs[i]);
}

WholeInputs::WholeInputs(const std::vector<at::Tensor>& inputs, const std::vector<microbatch::ChunkSpec>& specs,
                         microbatch::Microbatches& batch) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!is_leaf_with_gradient(inputs[i]) || specs[i].replicate) continue;
    Whole whole{i, inputs[i], specs[i].dim, {}};
    for (std::vector<at::Tensor>& of_one : batch.inputs) {
      of_one[i] = of_one[i].detach().requires_grad_();
      whole.pieces.push_back(of_one[i]);
    }
    wholes_.push_back(std::move(whole));
  }
}

void WholeInputs::stash_inputs(const std::vector<std::string>& names, GradientStash& stash) const {
  for (const Whole& whole : wholes_) stash.add(names[whole.index], whole.leaf);
}

void WholeInputs::join_gradients() const {
  const c10::NoGradGuard no_grad;
  for (const Whole& whole : wholes_) {
    if (std::ranges::none_of(whole.pieces, [](const at::Tensor& piece) { return piece.grad().defined(); })) continue;
    const at::Tensor joined = at::zeros_like(whole.leaf).detach();
    int64_t row = 0;
    for (const at::Tensor& piece : whole.pieces) {
      const int64_t rows = piece.size(whole.dim);
      if (piece.grad().defined()) joined.narrow(whole.dim, row, rows).copy_(piece.grad());
      row += rows;
    }
    // The same tensor may be another input, too.
    at::Tensor& grad = whole.leaf.mutable_grad();
    grad = grad.defined() ? at::add(grad, joined) : joined;
  }
}

}  // namespace plumbline::engine
