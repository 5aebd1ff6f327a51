// Mutants of recompute: of the inputs kept for the backward, and of the forward that runs there again.
#include <ATen/core/grad_mode.h>

#include <map>

#include "conformance/mutants/hooked_stage.h"
#include "conformance/mutants/mutants.h"
#include "conformance/mutants/same_bytes.h"

namespace plumbline::conformance {
namespace {

/// Recomputes the stage's forward before its backward, with a fault. The last stage, whose backward begins at the loss,
/// is left unchanged.
class RunsAgain : public engine::ForwardingRunner {
 public:
  enum class How { UpdatesBuffers, OtherRandomNumbers, LastInputs };

  RunsAgain(std::unique_ptr<engine::StageRunner> inner, const FaultSite& site, const split::StageState& state, How how)
      : ForwardingRunner(std::move(inner)), site_(site), state_(state), how_(how) {}

  void forward(int microbatch, std::span<const at::Tensor> inputs, Tensors& outputs) override {
    inner_->forward(microbatch, inputs, outputs);
    if (c10::GradMode::is_enabled()) last_inputs_.assign(inputs.begin(), inputs.end());
  }
  void backward(int microbatch, std::span<const at::Tensor> roots, std::span<const at::Tensor> root_grads,
                std::span<const at::Tensor> inputs, Tensors& input_grads) override {
    const Tensors fresh = again(microbatch, roots, inputs);
    inner_->backward(microbatch, fresh, root_grads, used_, input_grads);
  }
  void backward_input(int microbatch, std::span<const at::Tensor> roots, std::span<const at::Tensor> root_grads,
                      std::span<const at::Tensor> inputs, Tensors& input_grads) override {
    const Tensors fresh = again(microbatch, roots, inputs);
    inner_->backward_input(microbatch, fresh, root_grads, used_, input_grads);
  }

 private:
  /// Returns the recomputed roots; sets `used_` to the inputs from which they were computed.
  Tensors again(int microbatch, std::span<const at::Tensor> roots, std::span<const at::Tensor> inputs) {
    used_.assign(inputs.begin(), inputs.end());
    const bool other = how_ == How::LastInputs &&
                       !std::equal(inputs.begin(), inputs.end(), last_inputs_.begin(), last_inputs_.end(), same_bytes);
    if (other) used_ = last_inputs_;
    std::map<std::string, at::Tensor> before;
    for (const auto& [name, buffer] : state_.buffers) before[name] = buffer.clone();
    Tensors outputs, fresh;
    {
      const c10::AutoGradMode grad(true);
      const int as = how_ == How::OtherRandomNumbers ? (microbatch + 1) % site_.microbatches() : microbatch;
      inner_->forward(as, used_, outputs);
    }
    bool wrote = false;
    for (const auto& [name, buffer] : before) wrote = wrote || !same_bytes(buffer, state_.buffers.at(name));
    if (other || how_ == How::OtherRandomNumbers || (wrote && how_ == How::UpdatesBuffers)) site_.happens();
    for (const at::Tensor& output : outputs)
      if (output.defined() && output.requires_grad()) fresh.push_back(output);
    if (fresh.size() != roots.size()) fresh.assign(roots.begin(), roots.end());
    return fresh;
  }

  FaultSite site_;
  const split::StageState& state_;
  How how_;
  Tensors last_inputs_, used_;
};

/// Overwrites the inputs of the previous micro-batch, whose backward is still due, with those of each new one.
class InputsOverwritten : public engine::ForwardingRunner {
 public:
  InputsOverwritten(std::unique_ptr<engine::StageRunner> inner, const FaultSite& site)
      : ForwardingRunner(std::move(inner)), site_(site) {}
  void forward(int microbatch, std::span<const at::Tensor> inputs, Tensors& outputs) override {
    inner_->forward(microbatch, inputs, outputs);
    if (!c10::GradMode::is_enabled()) return;
    for (size_t i = 0; i < waiting_.size(); ++i) {
      const at::Tensor &kept = waiting_[i], &now = inputs[i];
      if (!kept.defined() || !now.defined() || !kept.is_floating_point() || kept.sizes() != now.sizes() ||
          !kept.is_contiguous() || same_bytes(kept, now))
        continue;
      kept.variable_data().copy_(now.detach());  // unseen by autograd
      site_.happens();
    }
    waiting_.clear();
    // These alias the tensors that the stage keeps for its backward, so they act like a reused receive buffer.
    for (const at::Tensor& input : inputs) waiting_.push_back(input);
  }
  void backward(int microbatch, std::span<const at::Tensor> roots, std::span<const at::Tensor> root_grads,
                std::span<const at::Tensor> inputs, Tensors& input_grads) override {
    forget(inputs);
    inner_->backward(microbatch, roots, root_grads, inputs, input_grads);
  }
  void backward_input(int microbatch, std::span<const at::Tensor> roots, std::span<const at::Tensor> root_grads,
                      std::span<const at::Tensor> inputs, Tensors& input_grads) override {
    forget(inputs);
    inner_->backward_input(microbatch, roots, root_grads, inputs, input_grads);
  }

 private:
  void forget(std::span<const at::Tensor> inputs) {
    if (!waiting_.empty() && !inputs.empty() && waiting_.front().is_same(inputs.front())) waiting_.clear();
  }

  FaultSite site_;
  Tensors waiting_;
};

using OptionsChange = std::function<void(engine::EngineOptions& options)>;

/// Layers with buffers or random numbers cannot be partitioned; a case with recompute runs its stages again already.
const Need plain_layers{"layers without buffers and random numbers, and no recompute", [](const MutantRun& run) {
                          return !run.traits.has_buffers && !run.traits.draws_random_numbers &&
                                 run.of.recompute == "never";
                        }};

Mutant runs_again(std::string name, std::string what, RunsAgain::How how, Need needs) {
  return {std::move(name),
          std::move(what),
          [how](const FaultSite& site) {
            Fault fault;
            fault.stage = [site, how](
                              int stage, const split::StageState& state,
                              std::unique_ptr<engine::StageRunner> inner) -> std::unique_ptr<engine::StageRunner> {
              if (stage == site.schedule.stages - 1) return inner;
              return std::make_unique<RunsAgain>(std::move(inner), site, state, how);
            };
            return fault;
          },
          {need::training, needs}};
}

/// Strikes on stages after the first only: the inputs of the first are the caller's batch.
Mutant overwritten(std::string name, std::string what, OptionsChange options) {
  return {std::move(name),
          std::move(what),
          [options = std::move(options)](const FaultSite& site) {
            Fault fault;
            fault.options = options;  // recompute starts from the kept inputs
            fault.stage = [site](int stage, const split::StageState&,
                                 std::unique_ptr<engine::StageRunner> inner) -> std::unique_ptr<engine::StageRunner> {
              if (stage == 0) return inner;
              return std::make_unique<InputsOverwritten>(std::move(inner), site);
            };
            return fault;
          },
          {need::training, need::several_microbatches, plain_layers}};
}

}  // namespace

std::vector<Mutant> mutants_in_recomputation() {
  return {
      runs_again("recompute-updates-buffers", "A stage that is recomputed in the backward updates its buffers again.",
                 RunsAgain::How::UpdatesBuffers, need::buffers),
      runs_again("recompute-redraws", "A stage that is recomputed in the backward draws other random numbers.",
                 RunsAgain::How::OtherRandomNumbers, need::random_layers),
      runs_again("recompute-last-inputs", "A stage is recomputed from the inputs of its latest forward.",
                 RunsAgain::How::LastInputs, need::several_microbatches),
      overwritten("input-buffer-reused", "Inputs whose backward is still due are overwritten by the next ones.", {}),
      overwritten("recompute-overwritten-inputs", "A stage is recomputed from inputs that the next ones overwrote.",
                  [](engine::EngineOptions& options) { options.recompute.policy = engine::Recompute::Always; }),
      overwritten("remat-overwritten-inputs", "A partitioned stage recomputes from inputs that were overwritten.",
                  [](engine::EngineOptions& options) { options.remat.mode = "min-cut"; }),
  };
}

}  // namespace plumbline::conformance
