// A stage whose inputs, outputs and gradients can be changed as they pass.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "conformance/backend/fault.h"

namespace plumbline::conformance {

/// Passes everything on.
class StageAround : public engine::StageRunner {
 public:
  explicit StageAround(std::unique_ptr<engine::StageRunner> inner) : inner_(std::move(inner)) {}
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
  std::unique_ptr<engine::StageRunner> inner_;
};

using Tensors = std::vector<at::Tensor>;

/// Each may change the tensors that it is given. What `inputs` and `outputs` do is part of the autograd graph.
struct StageHooks {
  std::function<void(int microbatch, Tensors& inputs)> inputs = {};
  std::function<void(int microbatch, Tensors& outputs)> outputs = {};
  std::function<void(int microbatch, Tensors& grads)> root_grads = {};
  std::function<void(int microbatch, Tensors& grads)> input_grads = {};
  /// What a parameter has accumulated after this micro-batch's part is added to what was there before; either may be
  /// undefined.
  std::function<at::Tensor(int microbatch, const std::string& name, const at::Tensor& before, const at::Tensor& part)>
      accumulate = {};
  /// Which micro-batch's weight half is done in place of the one that is due.
  std::function<int(int microbatch)> weight_half = {};
};

/// What a correct stage does for StageHooks::accumulate.
at::Tensor accumulated(const at::Tensor& before, const at::Tensor& part);

/// Says that the fault happened wherever a hook changed anything. `state` must outlive the stage.
std::unique_ptr<engine::StageRunner> with_hooks(std::unique_ptr<engine::StageRunner> inner, const FaultSite& site,
                                                const split::StageState& state, StageHooks hooks);

/// A fault in stages: `hooks` makes those of one stage; all empty: left alone.
Fault stage_fault(const FaultSite& site, std::function<StageHooks(int stage, const split::StageState& state)> hooks);

}  // namespace plumbline::conformance
