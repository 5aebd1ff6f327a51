#include "conformance/mutants/hooked_stage.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <map>

#include "conformance/mutants/same_bytes.h"
#include "reference/sum_of.h"

namespace plumbline::conformance {
namespace {

class HookedStage : public engine::ForwardingRunner {
 public:
  HookedStage(std::unique_ptr<engine::StageRunner> inner, const FaultSite& site, const split::StageState& state,
              StageHooks hooks)
      : ForwardingRunner(std::move(inner)), site_(site), state_(state), hooks_(std::move(hooks)) {}

  void forward(int microbatch, std::span<const at::Tensor> inputs, Tensors& outputs) override {
    const Tensors seen = changed(hooks_.inputs, microbatch, inputs);
    inner_->forward(microbatch, seen, outputs);
    if (hooks_.outputs) outputs = changed(hooks_.outputs, microbatch, outputs);
  }
  void backward(int microbatch, std::span<const at::Tensor> roots, std::span<const at::Tensor> root_grads,
                std::span<const at::Tensor> inputs, Tensors& input_grads) override {
    const Tensors from = without_gradients(hooks_.root_grads, microbatch, root_grads);
    accumulating(microbatch, [&] { inner_->backward(microbatch, roots, from, inputs, input_grads); });
    input_grads = without_gradients(hooks_.input_grads, microbatch, input_grads);
  }
  void backward_input(int microbatch, std::span<const at::Tensor> roots, std::span<const at::Tensor> root_grads,
                      std::span<const at::Tensor> inputs, Tensors& input_grads) override {
    const Tensors from = without_gradients(hooks_.root_grads, microbatch, root_grads);
    inner_->backward_input(microbatch, roots, from, inputs, input_grads);
    input_grads = without_gradients(hooks_.input_grads, microbatch, input_grads);
  }
  void backward_weight(int microbatch) override {
    int done = microbatch;
    if (hooks_.weight_half && (done = hooks_.weight_half(microbatch)) != microbatch) site_.happens();
    if (done >= 0) accumulating(done, [&] { inner_->backward_weight(done); });
  }

 private:
  using Hook = std::function<void(int, Tensors&)>;

  Tensors changed(const Hook& hook, int microbatch, std::span<const at::Tensor> before) const {
    Tensors after(before.begin(), before.end());
    if (!hook) return after;
    hook(microbatch, after);
    if (!std::equal(before.begin(), before.end(), after.begin(), after.end(), same_bytes)) site_.happens();
    return after;
  }
  Tensors without_gradients(const Hook& hook, int microbatch, std::span<const at::Tensor> before) const {
    const c10::NoGradGuard no_grad;
    return changed(hook, microbatch, before);
  }

  /// Lets `work` accumulate into empty gradients, then adds these to the earlier ones through the hook.
  template <class Work>
  void accumulating(int microbatch, Work&& work) {
    if (!hooks_.accumulate) return work();
    std::map<std::string, at::Tensor> before;
    for (const auto& [name, parameter] : state_.parameters) {
      before[name] = parameter.grad();
      parameter.mutable_grad() = at::Tensor();
    }
    work();
    const c10::NoGradGuard no_grad;
    for (const auto& [name, parameter] : state_.parameters) {
      const at::Tensor part = parameter.grad(), right = reference::sum_of(before[name], part);
      const at::Tensor sum = hooks_.accumulate(microbatch, name, before[name], part);
      if (!same_bytes(right, sum)) site_.happens();
      parameter.mutable_grad() = sum;
    }
  }

  FaultSite site_;
  const split::StageState& state_;
  StageHooks hooks_;
};

}  // namespace

std::unique_ptr<engine::StageRunner> with_hooks(std::unique_ptr<engine::StageRunner> inner, const FaultSite& site,
                                                const split::StageState& state, StageHooks hooks) {
  return std::make_unique<HookedStage>(std::move(inner), site, state, std::move(hooks));
}

Fault stage_fault(const FaultSite& site, std::function<StageHooks(int stage, const split::StageState& state)> hooks) {
  Fault fault;
  fault.stage = [site, hooks = std::move(hooks)](int stage, const split::StageState& state,
                                                 std::unique_ptr<engine::StageRunner> inner) {
    return with_hooks(std::move(inner), site, state, hooks(stage, state));
  };
  return fault;
}

}  // namespace plumbline::conformance
