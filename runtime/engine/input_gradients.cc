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

void add_to(at::Tensor& grad, const at::Tensor& more) {
  if (more.defined()) grad = grad.defined() ? at::add(grad, more) : more;
}

}  // namespace

InputStash::InputStash(const microbatch::Microbatches& batch) {
  for (const std::vector<at::Tensor>& inputs : batch.inputs)
    for (const at::Tensor& input : inputs) {
      // A replicated input is there again, and has no gradient any more.
      const auto is_known = [&](const Entry& entry) { return entry.leaf.is_same(input); };
      if (!is_leaf_with_gradient(input) || std::ranges::any_of(entries_, is_known)) continue;
      entries_.push_back({input, std::exchange(input.mutable_grad(), at::Tensor())});
    }
}

InputStash::~InputStash() {
  for (Entry& entry : entries_) entry.leaf.mutable_grad() = std::move(entry.before);
}

void InputStash::add_back() {
  const c10::NoGradGuard no_grad;
  for (Entry& entry : entries_) {
    add_to(entry.before, entry.leaf.grad());
    entry.leaf.mutable_grad() = std::move(entry.before);
  }
  entries_.clear();
}

WholeInputs::WholeInputs(const std::vector<at::Tensor>& inputs, const std::vector<microbatch::ChunkSpec>& specs,
                         microbatch::Microbatches& batch) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!is_leaf_with_gradient(inputs[i]) || specs[i].replicate) continue;
    Whole whole{inputs[i], specs[i].dim, {}};
    for (std::vector<at::Tensor>& of_one : batch.inputs) {
      of_one[i] = of_one[i].detach().requires_grad_();
      whole.pieces.push_back(of_one[i]);
    }
    wholes_.push_back(std::move(whole));
  }
}

void WholeInputs::add_gradients() const {
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
    add_to(whole.leaf.mutable_grad(), joined);
  }
}

}  // namespace plumbline::engine
