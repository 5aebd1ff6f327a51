// Mutants in a stage's forward: its inputs, outputs, buffers and random numbers.
#include <ATen/core/grad_mode.h>
#include <ATen/ops/conj.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/real.h>

#include <algorithm>
#include <map>

#include "conformance/mutants/hooked_stage.h"
#include "conformance/mutants/mutants.h"
#include "conformance/mutants/same_bytes.h"

namespace plumbline::conformance {
namespace {

using MakeForwardHooks = std::function<StageHooks(const FaultSite& site, int stage, const split::StageState& state)>;

Mutant in_a_stage(std::string name, std::string what, MakeForwardHooks hooks, std::vector<Need> needs = {}) {
  return {std::move(name), std::move(what),
          [hooks = std::move(hooks)](const FaultSite& site) {
            return stage_fault(
                site, [site, hooks](int stage, const split::StageState& state) { return hooks(site, stage, state); });
          },
          std::move(needs)};
}

using MakeStage = std::function<std::unique_ptr<engine::StageRunner>(
    const FaultSite& site, int stage, const split::StageState& state, std::unique_ptr<engine::StageRunner> inner)>;

Mutant in_place_of_a_stage(std::string name, std::string what, MakeStage make, std::vector<Need> needs) {
  return {std::move(name), std::move(what),
          [make = std::move(make)](const FaultSite& site) {
            Fault fault;
            fault.stage = [site, make](int stage, const split::StageState& state,
                                       std::unique_ptr<engine::StageRunner> inner) {
              return make(site, stage, state, std::move(inner));
            };
            return fault;
          },
          std::move(needs)};
}

bool is_floating(const at::Tensor& tensor) { return tensor.defined() && tensor.is_floating_point(); }

using Buffers = std::map<std::string, at::Tensor>;

Buffers copy_of(const Buffers& buffers) {
  Buffers copy;
  for (const auto& [name, buffer] : buffers) copy[name] = buffer.clone();
  return copy;
}

bool are_equal(const Buffers& a, const Buffers& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const auto& x, const auto& y) { return same_bytes(x.second, y.second); });
}

/// Runs each forward `times` times and, if `put_back`, restores the buffers afterwards.
class BuffersWrong : public engine::ForwardingRunner {
 public:
  BuffersWrong(std::unique_ptr<engine::StageRunner> inner, const FaultSite& site, const split::StageState& state,
               int times, bool put_back)
      : ForwardingRunner(std::move(inner)), site_(site), state_(state), times_(times), put_back_(put_back) {}
  void forward(int microbatch, std::span<const at::Tensor> inputs, Tensors& outputs) override {
    const Buffers before = copy_of(state_.buffers);
    for (int i = 0; i < times_; ++i) {
      Tensors fresh;
      inner_->forward(microbatch, inputs, fresh);
      outputs = std::move(fresh);
    }
    if (are_equal(before, state_.buffers)) return;
    if (times_ > 1) site_.happens();
    if (!put_back_) return;
    const c10::NoGradGuard no_grad;
    for (const auto& [name, buffer] : before) state_.buffers.at(name).copy_(buffer);
    site_.happens();
  }

 private:
  FaultSite site_;
  const split::StageState& state_;
  int times_;
  bool put_back_;
};

/// Runs each forward with the number, and so the random seed, of another micro-batch.
class OtherSeed : public engine::ForwardingRunner {
 public:
  OtherSeed(std::unique_ptr<engine::StageRunner> inner, const FaultSite& site)
      : ForwardingRunner(std::move(inner)), site_(site) {}
  void forward(int microbatch, std::span<const at::Tensor> inputs, Tensors& outputs) override {
    site_.happens();
    inner_->forward((microbatch + 1) % site_.microbatches(), inputs, outputs);
  }

 private:
  FaultSite site_;
};

Mutant with_options(std::string name, std::string what,
                    std::function<bool(const FaultSite&, engine::EngineOptions&)> change, std::vector<Need> needs) {
  return {std::move(name), std::move(what),
          [change = std::move(change)](const FaultSite& site) {
            Fault fault;
            fault.options = [site, change](engine::EngineOptions& options) {
              if (change(site, options)) site.happens();
            };
            return fault;
          },
          std::move(needs)};
}

}  // namespace

std::vector<Mutant> mutants_in_the_forward() {
  return {
      in_a_stage("activation-scaled", "The outputs of stage 1 are scaled by 1.001.",
                 [](const FaultSite&, int stage, const split::StageState&) {
                   if (stage != 1) return StageHooks{};
                   return StageHooks{.outputs = [](int, Tensors& outputs) {
                     for (at::Tensor& output : outputs)
                       if (is_floating(output)) output = at::mul(output, 1.001);
                   }};
                 }),
      in_a_stage("activation-in-bf16", "The outputs of stage 0 are rounded to bf16.",
                 [](const FaultSite&, int stage, const split::StageState&) {
                   if (stage != 0) return StageHooks{};
                   return StageHooks{.outputs = [](int, Tensors& outputs) {
                     for (at::Tensor& output : outputs)
                       if (is_floating(output)) output = output.to(at::kBFloat16).to(output.scalar_type());
                   }};
                 },
                 {need::float32}),
      in_a_stage("output-detached", "The outputs of stage 1 are detached: no gradient flows through them.",
                 [](const FaultSite&, int stage, const split::StageState&) {
                   if (stage != 1) return StageHooks{};
                   return StageHooks{.outputs = [](int, Tensors& outputs) {
                     for (at::Tensor& output : outputs)
                       if (output.defined()) output = output.detach();
                   }};
                 },
                 {need::training}),
      in_a_stage("input-detached", "Stage 1 uses its inputs detached: it returns no gradients.",
                 [](const FaultSite&, int stage, const split::StageState&) {
                   if (stage != 1) return StageHooks{};
                   return StageHooks{.inputs = [](int, Tensors& inputs) {
                     for (at::Tensor& input : inputs)
                       if (input.defined()) input = input.detach();
                   }};
                 },
                 {need::training}),
      in_a_stage("input-of-previous-microbatch", "Stage 1 uses the inputs of the previous micro-batch.",
                 [](const FaultSite&, int stage, const split::StageState&) {
                   if (stage != 1) return StageHooks{};
                   return StageHooks{.inputs = [last = Tensors()](int, Tensors& inputs) mutable {
                     const Tensors mine = inputs;
                     for (size_t i = 0; i < last.size(); ++i)
                       if (last[i].defined() && mine[i].defined() && last[i].sizes() == mine[i].sizes())
                         inputs[i] = last[i];
                     last = mine;
                   }};
                 },
                 {need::several_microbatches}),
      in_a_stage("inputs-exchanged", "A stage with two inputs of the same shape exchanges them.",
                 [](const FaultSite&, int, const split::StageState&) {
                   return StageHooks{.inputs = [](int, Tensors& inputs) {
                     if (inputs.size() > 1 && is_floating(inputs[0]) && is_floating(inputs[1]) &&
                         inputs[0].sizes() == inputs[1].sizes())
                       std::swap(inputs[0], inputs[1]);
                   }};
                 }),
      in_a_stage("outputs-exchanged", "A stage with two outputs of the same shape exchanges them.",
                 [](const FaultSite&, int, const split::StageState&) {
                   return StageHooks{.outputs = [](int, Tensors& outputs) {
                     if (outputs.size() > 1 && is_floating(outputs[0]) && is_floating(outputs[1]) &&
                         outputs[0].sizes() == outputs[1].sizes())
                       std::swap(outputs[0], outputs[1]);
                   }};
                 }),
      in_a_stage("last-row-of-output-zero", "The last row of stage 0's outputs is zero.",
                 [](const FaultSite&, int stage, const split::StageState&) {
                   if (stage != 0) return StageHooks{};
                   return StageHooks{.outputs = [](int, Tensors& outputs) {
                     for (at::Tensor& output : outputs) {
                       if (!is_floating(output) || output.dim() == 0) continue;
                       at::Tensor mask = at::ones_like(output.detach());
                       mask.select(0, -1).zero_();
                       output = at::mul(output, mask);
                     }
                   }};
                 }),
      in_a_stage("conjugated-output-as-memory",
                 "A conjugated output is passed on as the memory that it views, which is not conjugated.",
                 [](const FaultSite&, int, const split::StageState&) {
                   return StageHooks{.outputs = [](int, Tensors& outputs) {
                     for (at::Tensor& output : outputs)
                       if (output.defined() && output.is_conj()) output = at::conj(output);
                   }};
                 },
                 {need::conjugated_numbers}),
      in_a_stage("imaginary-part-lost", "A complex output loses its imaginary part.",
                 [](const FaultSite&, int, const split::StageState&) {
                   return StageHooks{.outputs = [](int, Tensors& outputs) {
                     for (at::Tensor& output : outputs)
                       if (output.defined() && output.is_complex()) output = at::real(output).to(output.scalar_type());
                   }};
                 },
                 {need::complex_numbers}),
      in_place_of_a_stage(
          "buffers-updated-twice", "Each forward runs twice, and so do its updates of buffers.",
          [](const FaultSite& site, int, const split::StageState& state, std::unique_ptr<engine::StageRunner> inner) {
            return std::make_unique<BuffersWrong>(std::move(inner), site, state, 2, false);
          },
          {need::buffers}),
      in_place_of_a_stage(
          "buffers-not-updated", "Buffers that a forward wrote are restored.",
          [](const FaultSite& site, int, const split::StageState& state, std::unique_ptr<engine::StageRunner> inner) {
            return std::make_unique<BuffersWrong>(std::move(inner), site, state, 1, true);
          },
          {need::buffers}),
      in_place_of_a_stage(
          "masks-of-another-microbatch", "Random layers draw the numbers of another micro-batch.",
          [](const FaultSite& site, int, const split::StageState&, std::unique_ptr<engine::StageRunner> inner) {
            return std::make_unique<OtherSeed>(std::move(inner), site);
          },
          {need::random_layers, need::several_microbatches}),
      with_options("seed-by-rank", "Every rank seeds its random layers differently.",
                   [](const FaultSite& site, engine::EngineOptions& options) {
                     options.seed += static_cast<uint64_t>(site.rank);
                     return site.rank > 0;
                   },
                   {need::random_layers}),
      with_options("one-mask-for-all-stages", "Random layers are seeded by the micro-batch alone.",
                   [](const FaultSite&, engine::EngineOptions& options) { return options.seed_by_microbatch = true; },
                   {need::random_layers}),
  };
}

}  // namespace plumbline::conformance
