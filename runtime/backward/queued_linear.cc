#include "runtime/backward/queued_linear.h"

#include <ATen/autocast_mode.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/linear.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/autograd/saved_variable.h>
#include <torch/csrc/autograd/variable.h>

#include <utility>

#include "runtime/backward/make_node.h"
#include "runtime/backward/requires_gradient.h"

namespace plumbline::backward {
namespace {

using torch::autograd::SavedVariable;
using torch::autograd::variable_list;

/// Autograd's formulas choose their operators by the same test.
bool is_column_major(const at::Tensor& matrix) { return matrix.stride(0) == 1 && matrix.stride(1) == matrix.size(0); }

at::Tensor as_matrix(const at::Tensor& tensor) {
  return tensor.dim() == 2 ? tensor : tensor.reshape({-1, tensor.size(-1)});
}

/// Computes the gradients of the valid edges, each separately, so that the cut may run it once for each half
/// (divisible.cc lists its name).
class QueuedLinearNode : public torch::autograd::Node {
 public:
  QueuedLinearNode(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias)
      : x_is_column_major_(x.dim() == 2 && is_column_major(x)) {
    for (const at::Tensor& value : {x, weight, bias})
      add_next_edge(requires_gradient(value) ? torch::autograd::impl::gradient_edge(value) : torch::autograd::Edge());
    if (should_compute_output(kWeight)) x_ = SavedVariable(x, /*is_output=*/false);
    if (should_compute_output(kX)) weight_ = SavedVariable(weight, /*is_output=*/false);
  }

  std::string name() const override { return "QueuedLinearBackward"; }

  void release_variables() override {
    const std::lock_guard<std::mutex> lock(mutex_);
    x_.reset_data();
    weight_.reset_data();
  }

 private:
  enum { kX, kWeight, kBias };

  variable_list apply(variable_list&& grads) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    const at::Tensor grad = std::move(grads[0]);
    variable_list result(3);
    if (!grad.defined()) return result;
    if (task_should_compute_output(kX)) result[kX] = grad_of_x(grad);
    if (task_should_compute_output(kWeight)) result[kWeight] = as_matrix(grad).t().mm(as_matrix(x_.unpack()));
    // The engine reduces a gradient that is larger than its target.
    if (should_compute_output(kBias)) result[kBias] = as_matrix(grad);
    return result;
  }

  at::Tensor grad_of_x(const at::Tensor& grad) const {
    const at::Tensor weight = weight_.unpack(), matrix = as_matrix(grad);
    if (x_is_column_major_) return weight.t().mm(matrix.t()).t();
    const at::Tensor product = matrix.mm(weight);
    return grad.dim() == 2 ? product : product.reshape({grad.size(0), grad.size(1), weight.size(1)});
  }

  bool x_is_column_major_;
  SavedVariable x_, weight_;
};

bool is_plain(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  if (x.layout() != at::kStrided || !at::isFloatingType(x.scalar_type()) || weight.dim() != 2 ||
      !weight.is_contiguous() || weight.scalar_type() != x.scalar_type() || weight.device() != x.device())
    return false;
  if (x.dim() != 2 && !(x.dim() == 3 && x.is_contiguous())) return false;
  if (x.numel() == 0 || x.size(-1) != weight.size(1) || x.numel() * weight.size(0) > kLargestQueuedProduct)
    return false;
  if (bias.defined() && (bias.dim() != 1 || bias.size(0) != weight.size(0) || bias.scalar_type() != x.scalar_type()))
    return false;
  return !at::autocast::is_autocast_enabled(x.device().type());
}

}  // namespace

at::Tensor queued_linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  const bool records =
      c10::GradMode::is_enabled() && (x.requires_grad() || weight.requires_grad() || requires_gradient(bias));
  const std::optional<at::Tensor> optional_bias = bias.defined() ? std::optional(bias) : std::nullopt;
  if (!records || !is_plain(x, weight, bias)) return at::linear(x, weight, optional_bias);
  const NodeHandle node = make_node<QueuedLinearNode>(x, weight, bias);
  at::Tensor output;
  {
    const c10::NoGradGuard no_grad;
    output = at::linear(x, weight, optional_bias);
  }
  // A view of the product would be a view made without gradients, which forbids changes in place.
  if (output.is_view()) output = output.detach();
  torch::autograd::set_history(output, node);
  return output;
}

}  // namespace plumbline::backward
