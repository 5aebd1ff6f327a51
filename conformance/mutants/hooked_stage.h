// A stage runner decorated with hooks that change its inputs, outputs and gradients.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "conformance/backend/fault.h"

namespace plumbline::conformance {

/// Forwards every call to `inner`; the base of all decorators of a stage.
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

/// A hook may change its tensors in place. Autograd records `inputs` and `outputs`; the other hooks run without it.
struct StageHooks {
  std::function<void(int microbatch, Tensors& inputs)> inputs = {};
  std::function<void(int microbatch, Tensors& outputs)> outputs = {};
  std::function<void(int microbatch, Tensors& grads)> root_grads = {};
  std::function<void(int microbatch, Tensors& grads)> input_grads = {};
  /// Returns a parameter's gradient after this micro-batch: the accumulated `before` plus `part`. Either may be
  /// undefined.
  std::function<at::Tensor(int microbatch, const std::string& name, const at::Tensor& before, const at::Tensor& part)>
      accumulate = {};
  /// The micro-batch whose weight half is executed instead of the one that is due; negative: none.
  std::function<int(int microbatch)> weight_half = {};
};

/// The correct StageHooks::accumulate.
at::Tensor accumulated(const at::Tensor& before, const at::Tensor& part);

/// Calls site.happens() whenever a hook changed anything. `state` must outlive the stage.
std::unique_ptr<engine::StageRunner> with_hooks(std::unique_ptr<engine::StageRunner> inner, const FaultSite& site,
                                                const split::StageState& state, StageHooks hooks);

/// A fault in stages. `hooks` returns the hooks of one stage; empty hooks leave the stage unchanged.
Fault stage_fault(const FaultSite& site, std::function<StageHooks(int stage, const split::StageState& state)> hooks);

}  // namespace plumbline::conformance
