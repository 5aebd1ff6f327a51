// Mutants in a stage's backward: the gradients of its outputs, those of its inputs, and its two halves.
#include <ATen/ops/conj.h>
#include <ATen/ops/div.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>

#include "conformance/mutants/stage_mutant.h"

namespace plumbline::conformance {
namespace {

Mutant backward(std::string name, std::string what, MakeStageHooks hooks, std::vector<Need> needs = {need::training}) {
  return stage_mutant(std::move(name), std::move(what), std::move(hooks), std::move(needs));
}

template <class Change>
void each(Tensors& tensors, Change change) {
  for (at::Tensor& tensor : tensors)
    if (tensor.defined()) tensor = change(tensor);
}

/// Replaces gradients by those of the stage's previous micro-batch where the shapes agree.
std::function<void(int, Tensors&)> those_before() {
  return [last = Tensors()](int, Tensors& grads) mutable {
    const Tensors mine = grads;
    for (size_t i = 0; i < std::min(last.size(), mine.size()); ++i)
      if (last[i].defined() && mine[i].defined() && last[i].sizes() == mine[i].sizes()) grads[i] = last[i];
    last.clear();
    for (const at::Tensor& grad : mine) last.push_back(grad.defined() ? grad.clone() : grad);
  };
}

/// Divides the backward wrongly: the input half does everything, the weight half nothing.
class WholeInFirstHalf : public engine::ForwardingRunner {
 public:
  WholeInFirstHalf(std::unique_ptr<engine::StageRunner> inner, const FaultSite& site)
      : ForwardingRunner(std::move(inner)), site_(site) {}
  void backward_input(int microbatch, std::span<const at::Tensor> roots, std::span<const at::Tensor> root_grads,
                      std::span<const at::Tensor> inputs, Tensors& input_grads) override {
    site_.happens();
    inner_->backward(microbatch, roots, root_grads, inputs, input_grads);
  }
  void backward_weight(int) override {}

 private:
  FaultSite site_;
};

}  // namespace

std::vector<Mutant> mutants_in_the_backward() {
  const std::vector<Need> halves = {need::halves}, several = {need::training, need::several_microbatches};
  std::vector<Mutant> all = {
      backward("scale-stage-gradient", "The gradient that stage 0 starts its backward from is scaled by 1.001.",
               [](const FaultSite&, int stage) {
                 if (stage != 0) return StageHooks{};
                 return StageHooks{.root_grads = [](int, Tensors& grads) {
                   each(grads, [](const at::Tensor& grad) { return at::mul(grad, 1.001); });
                 }};
               }),
      backward("gradient-begins-at-one", "All stages but the last start their backward from ones.",
               [](const FaultSite& site, int stage) {
                 if (stage == site.schedule.stages - 1) return StageHooks{};
                 return StageHooks{.root_grads = [](int, Tensors& grads) {
                   each(grads, [](const at::Tensor& grad) { return at::ones_like(grad); });
                 }};
               }),
      backward(
          "gradient-of-previous-microbatch", "Stage 0 starts its backward from the previous micro-batch's gradients.",
          [](const FaultSite&, int stage) {
            return stage == 0 ? StageHooks{.root_grads = those_before()} : StageHooks{};
          },
          several),
      backward("second-output-forgotten", "A stage with several outputs uses the gradient of the first only.",
               [](const FaultSite&, int) {
                 return StageHooks{.root_grads = [](int, Tensors& grads) {
                   for (size_t i = 1; i < grads.size(); ++i) grads[i] = at::zeros_like(grads[i]);
                 }};
               }),
      backward("output-gradients-exchanged", "Two outputs of the same shape start from each other's gradient.",
               [](const FaultSite&, int) {
                 return StageHooks{.root_grads = [](int, Tensors& grads) {
                   if (grads.size() > 1 && grads[0].sizes() == grads[1].sizes()) std::swap(grads[0], grads[1]);
                 }};
               }),
      backward("no-gradient-for-last-microbatch", "Stages return zero input gradients for the last micro-batch.",
               [](const FaultSite& site, int) {
                 return StageHooks{.input_grads = [last = site.microbatches() - 1](int microbatch, Tensors& grads) {
                   if (microbatch == last) each(grads, [](const at::Tensor& grad) { return at::zeros_like(grad); });
                 }};
               }),
      backward("divided-in-each-stage",
               "Each stage divides the gradients that it sends back by the number of micro-batches (DeepSpeed 8152).",
               [](const FaultSite& site, int) {
                 return StageHooks{.input_grads = [by = site.microbatches()](int, Tensors& grads) {
                   each(grads, [by](const at::Tensor& grad) { return at::div(grad, by); });
                 }};
               },
               {need::training, need::several_microbatches}),
      backward("input-gradient-doubled", "The last stage returns twice its input gradients.",
               [](const FaultSite& site, int stage) {
                 if (stage != site.schedule.stages - 1) return StageHooks{};
                 return StageHooks{.input_grads = [](int, Tensors& grads) {
                   each(grads, [](const at::Tensor& grad) { return at::mul(grad, 2); });
                 }};
               }),
      backward(
          "input-gradient-of-previous-microbatch", "The last stage returns the previous micro-batch's input gradients.",
          [](const FaultSite& site, int stage) {
            return stage == site.schedule.stages - 1 ? StageHooks{.input_grads = those_before()} : StageHooks{};
          },
          several),
      backward("conjugated-gradient-as-memory",
               "A conjugated gradient is sent back as the memory that it views, which is not conjugated.",
               [](const FaultSite&, int) {
                 return StageHooks{.input_grads = [](int, Tensors& grads) {
                   each(grads, [](const at::Tensor& grad) { return grad.is_conj() ? at::conj(grad) : grad; });
                 }};
               },
               {need::training, need::conjugated_numbers}),
      backward("complex-gradient-conjugated", "Stages send the conjugates of complex gradients back.",
               [](const FaultSite&, int) {
                 return StageHooks{.input_grads = [](int, Tensors& grads) {
                   each(grads, [](const at::Tensor& grad) { return grad.is_complex() ? at::conj(grad) : grad; });
                 }};
               },
               {need::training, need::complex_numbers}),
      backward("input-gradients-exchanged", "The gradients of two inputs of the same shape are exchanged.",
               [](const FaultSite&, int) {
                 return StageHooks{.input_grads = [](int, Tensors& grads) {
                   if (grads.size() > 1 && grads[0].defined() && grads[1].defined() &&
                       grads[0].sizes() == grads[1].sizes())
                     std::swap(grads[0], grads[1]);
                 }};
               }),
      backward("second-input-gradient-lost",
               "A stage with several inputs returns zero gradients for all but the first.",
               [](const FaultSite&, int) {
                 return StageHooks{.input_grads = [](int, Tensors& grads) {
                   for (size_t i = 1; i < grads.size(); ++i)
                     if (grads[i].defined()) grads[i] = at::zeros_like(grads[i]);
                 }};
               }),
      backward("input-gradient-in-bf16", "The input gradients of a stage are rounded to bf16.",
               [](const FaultSite&, int) {
                 return StageHooks{.input_grads = [](int, Tensors& grads) {
                   each(grads, [](const at::Tensor& grad) { return grad.to(at::kBFloat16).to(grad.scalar_type()); });
                 }};
               },
               {need::training, need::float32}),
      backward("gradient-clipped", "The input gradients of a stage are clipped to 1.",
               [](const FaultSite&, int) {
                 return StageHooks{.input_grads = [](int, Tensors& grads) {
                   each(grads, [](const at::Tensor& grad) { return grad.clamp(-1, 1); });
                 }};
               }),
      backward(
          "last-weight-half-left-out", "The weight half of the last micro-batch is left out.",
          [](const FaultSite& site, int) {
            return StageHooks{.weight_half = [last = site.microbatches() - 1](int microbatch) {
              return microbatch == last ? -1 : microbatch;
            }};
          },
          halves),
  };
  Mutant whole{"weights-in-the-input-half", "The input half does the whole backward, and the weight half nothing.",
               [](const FaultSite& site) {
                 Fault fault;
                 fault.stage = [site](int, const split::StageState&, std::unique_ptr<engine::StageRunner> inner) {
                   return std::make_unique<WholeInFirstHalf>(std::move(inner), site);
                 };
                 return fault;
               },
               halves};
  all.push_back(std::move(whole));
  return all;
}

}  // namespace plumbline::conformance
