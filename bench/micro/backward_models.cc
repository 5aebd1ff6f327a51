#include "bench/micro/backward_models.h"

#include "reference/result_key.h"
#include "runtime/backward/stage_backward.h"
#include "runtime/error.h"
#include "runtime/graph/host_tensors.h"

namespace plumbline::bench {
const std::vector<ModelShape>& backward_models() {
  static const std::vector<ModelShape> models = {{.rows = 512, .length = 1, .width = 1024, .layers = 6},
                                                 {.rows = 64, .length = 1, .width = 64, .layers = 8},
                                                 {true, 2, 64, 64, 2},
                                                 {true, 4, 128, 256, 2},
                                                 {true, 4, 256, 512, 2}};
  return models;
}

BackwardStage::BackwardStage(const ModelShape& model) : model_(model), module_(std::make_shared<FilledModel>(model)) {
  x_ = fill(model.sizes(), /*stream=*/0, kActivationExponent, 0).requires_grad_(true);
  root_grad_ = fill(model.sizes(), /*stream=*/1, kActivationExponent, 0);
}

void BackwardStage::forward() {
  for (const at::Tensor& parameter : module_->parameters()) parameter.mutable_grad() = at::Tensor();
  x_.mutable_grad() = at::Tensor();
  input_grads_.clear();
  output_ = module_->forward(x_);
}

void BackwardStage::full_backward() {
  backward::stage_backward({&output_, 1}, {&root_grad_, 1}, {&x_, 1}, input_grads_);
  output_ = at::Tensor();
}

void BackwardStage::input_backward() {
  backward::stage_backward_input({&output_, 1}, {&root_grad_, 1}, {&x_, 1}, input_grads_, weights_);
  output_ = at::Tensor();
}

void BackwardStage::weight_backward() { backward::stage_backward_weight(weights_); }

TensorMap BackwardStage::gradients() const {
  const std::string model = to_string(model_) + ".";
  TensorMap map;
  const reference::ResultKey input{
      .kind = reference::ResultKind::Backward, .stage = 0, .microbatch = 0, .name = model + "x"};
  map.emplace(to_string(input), graph::to_host(input_grads_.at(0)));
  for (const auto& item : module_->named_parameters())
    map.emplace(to_string(reference::ResultKey{.kind = reference::ResultKind::Grad, .name = model + item.key()}),
                graph::to_host(item.value().grad()));
  return map;
}

void check_halves(BackwardStage& stage) {
  stage.forward();
  stage.full_backward();
  const TensorMap whole = stage.gradients();
  stage.forward();
  stage.input_backward();
  stage.weight_backward();
  PLUMBLINE_CHECK(stage.gradients() == whole, "the two halves give different gradients than the full backward");
}

}  // namespace plumbline::bench
