#include "conformance/mutants.h"

#include <ATen/ops/mul.h>

#include <ranges>

#include "runtime/error.h"
#include "runtime/join.h"
#include "runtime/transport/transport_around.h"

namespace plumbline {
namespace {

/// Passes everything on.
class StageDecorator : public StageRunner {
 public:
  explicit StageDecorator(std::unique_ptr<StageRunner> inner) : inner_(std::move(inner)) {}
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

 private:
  std::unique_ptr<StageRunner> inner_;
};

class LastGradientDropped : public StageDecorator {
 public:
  LastGradientDropped(int last, const StageState& state, std::unique_ptr<StageRunner> inner)
      : StageDecorator(std::move(inner)), last_(last), state_(state) {}
  void backward(int microbatch, std::span<const at::Tensor> roots, std::span<const at::Tensor> root_grads,
                std::span<const at::Tensor> inputs, std::vector<at::Tensor>& input_grads) override {
    const Kept kept = gradients(microbatch);
    StageDecorator::backward(microbatch, roots, root_grads, inputs, input_grads);
    put_back(kept);
  }
  void backward_weight(int microbatch) override {
    const Kept kept = gradients(microbatch);
    StageDecorator::backward_weight(microbatch);
    put_back(kept);
  }

 private:
  using Kept = std::vector<std::pair<at::Tensor, at::Tensor>>;

  /// Each parameter with what it has accumulated; of the last micro-batch only.
  Kept gradients(int microbatch) const {
    Kept kept;
    if (microbatch == last_)
      for (const auto& [name, parameter] : state_.parameters)
        kept.emplace_back(parameter, parameter.grad().defined() ? parameter.grad().clone() : at::Tensor());
    return kept;
  }
  static void put_back(const Kept& kept) {
    for (const auto& [parameter, grad] : kept) parameter.mutable_grad() = grad;
  }

  int last_;
  const StageState& state_;
};

class GradientScaled : public StageDecorator {
 public:
  using StageDecorator::StageDecorator;
  void backward(int microbatch, std::span<const at::Tensor> roots, std::span<const at::Tensor> root_grads,
                std::span<const at::Tensor> inputs, std::vector<at::Tensor>& input_grads) override {
    StageDecorator::backward(microbatch, roots, scaled(root_grads), inputs, input_grads);
  }
  void backward_input(int microbatch, std::span<const at::Tensor> roots, std::span<const at::Tensor> root_grads,
                      std::span<const at::Tensor> inputs, std::vector<at::Tensor>& input_grads) override {
    StageDecorator::backward_input(microbatch, roots, scaled(root_grads), inputs, input_grads);
  }

 private:
  static std::vector<at::Tensor> scaled(std::span<const at::Tensor> grads) {
    std::vector<at::Tensor> out;
    for (const at::Tensor& grad : grads) out.push_back(at::mul(grad, 1.001));
    return out;
  }
};

/// Sends the forward values of micro-batches 0 and 1 under each other's tag. Tags of values are dense from 0 and
/// alternate between M forward and M backward ones (runtime/engine/plan.h); those of shared gradients lie at the top.
class OutputsSwapped : public TransportAround {
 public:
  OutputsSwapped(Transport& inner, int microbatches) : TransportAround(inner), microbatches_(microbatches) {}
  Request isend(const void* data, size_t bytes, int peer, int64_t tag) override {
    const bool forward = tag >= 0 && tag < max_tag() / 2 && tag / microbatches_ % 2 == 0;
    const int64_t microbatch = tag % microbatches_;
    if (forward && rank() == 0 && microbatches_ > 1 && microbatch < 2) tag += microbatch == 0 ? 1 : -1;
    return inner_.isend(data, bytes, peer, tag);
  }

 private:
  int microbatches_;
};

}  // namespace

const std::vector<Mutant>& mutants() {
  static const std::vector<Mutant> all = {
      {"drop-last-microbatch",
       "The last micro-batch's parameter gradients are dropped.",
       1,
       [](int, int microbatches, const StageState& state, std::unique_ptr<StageRunner> inner) {
         return std::make_unique<LastGradientDropped>(microbatches - 1, state, std::move(inner));
       },
       {}},
      {"swap-microbatches",
       "The outputs of micro-batches 0 and 1 are swapped on the way from the first rank.",
       2,
       {},
       [](Transport& inner, int microbatches) { return std::make_unique<OutputsSwapped>(inner, microbatches); }},
      {"scale-stage-gradient",
       "The gradient that stage 0 starts its backward from is scaled by 1.001.",
       1,
       [](int stage, int, const StageState&, std::unique_ptr<StageRunner> inner) -> std::unique_ptr<StageRunner> {
         if (stage != 0) return inner;
         return std::make_unique<GradientScaled>(std::move(inner));
       },
       {}},
  };
  return all;
}

const Mutant& find_mutant(const std::string& name) {
  for (const Mutant& mutant : mutants())
    if (mutant.name == name) return mutant;
  throw InputError("no mutant '" + name + "'; there are: " + join(mutants() | std::views::transform(&Mutant::name)));
}

}  // namespace plumbline
