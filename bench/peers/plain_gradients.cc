#include "bench/peers/plain_gradients.h"

#include <chrono>

#include "bench/peers/pipeline_round.h"
#include "runtime/clock.h"
#include "runtime/graph/host_tensors.h"
#include "runtime/text/significant.h"

namespace plumbline::bench {
namespace {

constexpr double kRoundings = 16;

void run_batch(FilledModel& model, const std::vector<PlainGradients::Microbatch>& batch) {
  for (const at::Tensor& parameter : model.parameters()) parameter.mutable_grad() = at::Tensor();
  for (const auto& [input, target] : batch) sum_of_products(model.forward(input), target).backward();
}

double euclidean(const at::Tensor& tensor) { return tensor.norm().item<double>(); }

}  // namespace

PlainGradients::PlainGradients(const ModelShape& shape, int microbatches)
    : model_(std::make_shared<FilledModel>(shape)) {
  const at::Tensor inputs = fill(shape.sizes(microbatches), /*stream=*/0, kActivationExponent, 0);
  const at::Tensor target = fill(shape.sizes(microbatches), /*stream=*/1, kActivationExponent, 0);
  const int64_t rows = shape.sizes()[0];
  std::vector<Microbatch> wide_batch;
  for (int m = 0; m < microbatches; ++m) {
    batch_.push_back({inputs.narrow(0, m * rows, rows), target.narrow(0, m * rows, rows)});
    wide_batch.push_back({batch_.back().input.to(at::kDouble), batch_.back().target.to(at::kDouble)});
  }
  FilledModel wide(shape);
  wide.to(at::kDouble);
  run_batch(wide, wide_batch);
  run_batch(*model_, batch_);
  const auto rounded = model_->named_parameters();
  for (const auto& item : wide.named_parameters()) {
    const at::Tensor value = item.value().grad();
    const double off = euclidean(rounded[item.key()].grad().to(at::kDouble) - value);
    expected_[item.key()] = {value, kRoundings * std::max(off, unit_roundoff("F32") * euclidean(value))};
  }
}

std::string PlainGradients::why_wrong(const TensorMap& gradients) const {
  for (const auto& [name, expected] : expected_) {
    const auto found = gradients.find(name);
    if (found == gradients.end()) return "no gradient of " + name;
    const at::Tensor gradient = graph::from_host(found->second).to(at::kDouble);
    if (gradient.sizes() != expected.value.sizes()) return "the gradient of " + name + " has another shape";
    const double off = euclidean(gradient - expected.value);
    if (!(off <= expected.furthest))  // also for NaN
      return "the gradient of " + name + " is off by " + significant(off / euclidean(expected.value), 2) +
             " of its norm, at most " + significant(expected.furthest / euclidean(expected.value), 2) + " is rounding";
  }
  if (gradients.size() != expected_.size()) return "gradients of parameters that the model does not have";
  return {};
}

double PlainGradients::seconds() {
  const auto begin = std::chrono::steady_clock::now();
  run_batch(*model_, batch_);
  return seconds_since(begin);
}

}  // namespace plumbline::bench
