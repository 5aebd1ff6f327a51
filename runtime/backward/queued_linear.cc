#include "runtime/backward/queued_linear.h"

#include <ATen/autocast_mode.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/linear.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/autograd/saved_variable.h>
#include <torch/csrc/autograd/variable.h>

#include <utility>

#include "runtime/backward/make_node.h"

namespace plumbline {
namespace {

using torch::autograd::SavedVariable;
using torch::autograd::variable_list;

bool requires_gradient(const at::Tensor& tensor) { return tensor.defined() && tensor.requires_grad(); }

/// As autograd's formulas choose their operators.
bool is_column_major(const at::Tensor& matrix) { return matrix.stride(0) == 1 && matrix.stride(1) == matrix.size(0); }

at::Tensor as_matrix(const at::Tensor& tensor) {
  return tensor.dim() == 2 ? tensor : tensor.reshape({-1, tensor.size(-1)});
}

class QueuedLinearNode : public HalvedNode {
 public:
  QueuedLinearNode(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
    for (const at::Tensor& value : {x, weight, bias})
      add_next_edge(requires_gradient(value) ? torch::autograd::impl::gradient_edge(value) : torch::autograd::Edge());
    for (int e = 0; e < 3; ++e) asked_at_first_[e] = should_compute_output(e);
    if (asked_at_first_[kWeight]) x_ = SavedVariable(x, /*is_output=*/false);
    if (asked_at_first_[kX]) weight_ = SavedVariable(weight, /*is_output=*/false);
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
    const bool for_x = should_compute_output(kX);
    const bool for_parameters = should_compute_output(kWeight) || should_compute_output(kBias);
    const bool is_second = for_parameters && !for_x && asked_at_first_[kX];
    const bool is_first = for_x && !for_parameters && (asked_at_first_[kWeight] || asked_at_first_[kBias]);
    at::Tensor grad = is_second ? std::exchange(queued_grad_, {}) : std::move(grads[0]);
    variable_list result(3);
    if (!grad.defined()) return result;
    if (for_x && task_should_compute_output(kX)) result[kX] = grad_of_x(grad);
    if (is_first) {
      queued_grad_ = std::move(grad);
      if (asked_at_first_[kWeight]) queued_x_ = x_.unpack();
      return result;
    }
    if (should_compute_output(kWeight) && task_should_compute_output(kWeight)) {
      const at::Tensor x = is_second ? std::exchange(queued_x_, {}) : x_.unpack();
      result[kWeight] = as_matrix(grad).t().mm(as_matrix(x));
    }
    // Whoever executes a node sums what is too large for where it goes.
    if (should_compute_output(kBias)) result[kBias] = as_matrix(grad);
    return result;
  }

  at::Tensor grad_of_x(const at::Tensor& grad) const {
    const at::Tensor weight = weight_.unpack(), matrix = as_matrix(grad);
    if (x_is_column_major) return weight.t().mm(matrix.t()).t();
    const at::Tensor product = matrix.mm(weight);
    return grad.dim() == 2 ? product : product.reshape({grad.size(0), grad.size(1), weight.size(1)});
  }

 public:
  bool x_is_column_major = false;

 private:
  SavedVariable x_, weight_;
  bool asked_at_first_[3];
  // Between the halves.
  at::Tensor queued_grad_, queued_x_;
};

bool is_plain(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  if (x.layout() != at::kStrided || !at::isFloatingType(x.scalar_type()) || weight.dim() != 2 ||
      !weight.is_contiguous() || weight.scalar_type() != x.scalar_type() || weight.device() != x.device())
    return false;
  if (x.dim() != 2 && !(x.dim() == 3 && x.is_contiguous())) return false;
  if (x.numel() == 0 || x.size(-1) != weight.size(1)) return false;
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
  // A view of the product would be one that was made without gradients, which forbids changes in place.
  if (output.is_view()) output = output.detach();
  static_cast<QueuedLinearNode&>(*node).x_is_column_major = x.dim() == 2 && is_column_major(x);
  torch::autograd::set_history(output, node);
  return output;
}

}  // namespace plumbline
