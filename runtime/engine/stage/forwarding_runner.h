// ForwardingRunner: forwards every call to another stage runner. A runner that observes or changes a stage derives from
// this class and overrides the functions that differ.
#pragma once

#include <memory>

#include "runtime/engine/stage/stage_runner.h"

namespace plumbline::engine {

class ForwardingRunner : public StageRunner {
 public:
  explicit ForwardingRunner(std::unique_ptr<StageRunner> inner) : inner_(std::move(inner)) {}

  void forward(int microbatch, std::span<const at::Tensor> inputs, std::vector<at::Tensor>& outputs) override {
    inner_->forward(microbatch, inputs, outputs);
  }
  void backward(int microbatch, std::span<const at::Tensor> roots, std::span<const at::Tensor> root_grads,
                std::span<const at::Tensor> inputs, std::vector<at::Tensor>& input_grads) override {
    inner_->backward(microbatch, roots, root_grads, inputs, input_grads);
  }
  void backward_input(int microbatch, std::span<const at::Tensor> roots, std::span<const at::Tensor> root_grads,
                      std::span<const at::Tensor> inputs, std::vector<at::Tensor>& input_grads) override {
    inner_->backward_input(microbatch, roots, root_grads, inputs, input_grads);
  }
  void backward_weight(int microbatch) override { inner_->backward_weight(microbatch); }
  void drop_halves() noexcept override { inner_->drop_halves(); }

 protected:
  std::unique_ptr<StageRunner> inner_;
};

}  // namespace plumbline::engine
