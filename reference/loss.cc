#include "reference/loss.h"

#include <ATen/ops/add.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/div.h>
#include <ATen/ops/mean.h>
#include <ATen/ops/mse_loss.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <array>
#include <span>

#include "runtime/error.h"

namespace plumbline::reference {

namespace {

at::Tensor class_weights(const at::Tensor& output) {
  std::vector<double> weights;
  for (int64_t i = 0; i < output.size(-1); ++i) weights.push_back(class_weight(i));
  return at::tensor(weights, output.options().requires_grad(false));
}

at::Tensor own_loss(const LossSpec& spec, const at::Tensor& output, const at::Tensor& target) {
  const bool mean = spec.reduction == Reduction::Mean;
  const int64_t reduction = mean ? at::Reduction::Mean : at::Reduction::Sum;
  switch (spec.kind) {
    case LossKind::Sum:
      return mean ? at::mean(output) : at::sum(output);
    case LossKind::Mse:
      return at::mse_loss(output, target, reduction);
    case LossKind::CrossEntropy:
      return at::cross_entropy_loss(output.reshape({-1, output.size(-1)}), target.reshape(-1),
                                    spec.class_weights ? class_weights(output) : at::Tensor(), reduction,
                                    kIgnoredTarget);
    case LossKind::Output:
      return output;
  }
  throw Error("unknown loss");
}

/// The output with which the loss function compares.
at::Tensor adjusted(const at::Tensor& output, const std::vector<at::Tensor>& parameters) {
  return parameters.empty() ? output : at::add(at::mul(output, parameters[0]), parameters[1]);
}

double counted(const LossSpec& spec, const at::Tensor& target) {
  if (spec.kind != LossKind::CrossEntropy) return static_cast<double>(target.numel());
  const at::Tensor classes = target.cpu().contiguous();
  const std::span<const int64_t> indices(classes.const_data_ptr<int64_t>(), classes.numel());
  double count = 0;
  for (int64_t index : indices)
    if (index != kIgnoredTarget) count += spec.class_weights ? class_weight(index) : 1.0;
  return count;
}

}  // namespace

std::vector<at::Tensor> loss_parameters(const LossSpec& spec, const std::map<std::string, at::Tensor>& parameters) {
  std::vector<at::Tensor> found;
  if (!spec.parameters) return found;
  for (const char* name : kLossParameters) {
    const auto it = parameters.find(name);
    PLUMBLINE_CHECK(it != parameters.end(), "the last stage lacks " + std::string(name));
    found.push_back(it->second);
  }
  return found;
}

at::Tensor compute_loss(const LossSpec& spec, const std::vector<at::Tensor>& outputs, const Targets& targets,
                        double divisor, const std::vector<at::Tensor>& parameters) {
  const auto loss_of = [&](size_t i) {
    return own_loss(spec, adjusted(outputs.at(i), parameters), i < targets.size() ? targets[i] : at::Tensor());
  };
  at::Tensor loss = loss_of(0);
  for (size_t i = 1; i < targets.size(); ++i) loss = at::add(loss, loss_of(i));
  if (spec.auxiliary == AuxiliaryLosses::Added)
    for (size_t i = std::max<size_t>(targets.size(), 1); i < outputs.size(); ++i)
      if (outputs[i].defined()) loss = at::add(loss, outputs[i]);
  return divisor == 1.0 ? loss : at::div(loss, divisor);
}

double loss_divisor(const Case& c, const Targets& of_batch) {
  double divisor = c.division == Division::User ? c.microbatches : 1.0;
  if (c.loss.reduction == Reduction::BatchMean && of_batch.defined()) divisor *= counted_targets(c.loss, of_batch);
  return divisor;
}

bool has_loss(const LossSpec& spec, const Targets& targets) {
  return targets.defined() || spec.kind == LossKind::Sum || spec.kind == LossKind::Output;
}

bool counts_targets(const LossSpec& spec) { return spec.ignores_targets || spec.class_weights; }

double counted_targets(const LossSpec& spec, const Targets& targets) {
  double count = 0;
  for (const at::Tensor& target : targets) count += counted(spec, target);
  return count;
}

double class_weight(int64_t index) {
  constexpr std::array<double, 4> kWeights = {1.0, 2.0, 0.5, 4.0};
  return kWeights[index % kWeights.size()];
}

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
