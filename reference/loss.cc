#include "reference/loss.h"

#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/mean.h>
#include <ATen/ops/mse_loss.h>
#include <ATen/ops/sum.h>

#include "runtime/error.h"

namespace plumbline::reference {

at::Tensor compute_loss(const LossSpec& spec, const std::vector<at::Tensor>& outputs, const at::Tensor& target) {
  const at::Tensor& output = outputs.at(0);
  const bool mean = spec.reduction == Reduction::Mean;
  const int64_t reduction = mean ? at::Reduction::Mean : at::Reduction::Sum;
  switch (spec.kind) {
    case LossKind::Sum:
      return mean ? at::mean(output) : at::sum(output);
    case LossKind::Mse:
      return at::mse_loss(output, target, reduction);
    case LossKind::CrossEntropy:
      return at::cross_entropy_loss(output.reshape({-1, output.size(-1)}), target.reshape(-1), {}, reduction,
                                    kIgnoredTarget);
    case LossKind::Output:
      return output;
  }
  throw Error("unknown loss");
}

bool has_loss(const LossSpec& spec, const at::Tensor& target) {
  return target.defined() || spec.kind == LossKind::Sum || spec.kind == LossKind::Output;
}

int64_t counted_targets(const at::Tensor& target) { return target.ne(kIgnoredTarget).sum().item<int64_t>(); }

at::ScalarType scalar_type(Dtype dtype) {
  switch (dtype) {
    case Dtype::F32:
      return at::kFloat;
    case Dtype::BF16:
      return at::kBFloat16;
    case Dtype::F64:
      return at::kDouble;
    case Dtype::F16:
      return at::kHalf;
  }
  throw Error("unknown dtype");
}

}  // namespace plumbline::reference
