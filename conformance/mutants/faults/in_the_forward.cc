// Mutants in a stage's forward: its inputs, outputs, buffers and random numbers.
#include <ATen/core/grad_mode.h>
#include <ATen/ops/conj.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/real.h>

#include <algorithm>
#include <map>

#include "conformance/mutants/options_mutant.h"
#include "conformance/mutants/same_bytes.h"
#include "conformance/mutants/stage_mutant.h"

namespace plumbline::conformance {
namespace {

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

constexpr int kEveryStage = -1;

/// Replaces each output of stage `of` by `change` of it.
Mutant output_mutant(std::string name, std::string what, int of, at::Tensor (*change)(const at::Tensor& output),
                     std::vector<Need> needs = {}) {
  return stage_mutant(
      std::move(name), std::move(what),
      [of, change](const FaultSite&, int stage) {
        if (of != kEveryStage && of != stage) return StageHooks{};
        return StageHooks{.outputs = [change](int, Tensors& outputs) {
          for (at::Tensor& output : outputs)
            if (output.defined()) output = change(output);
        }};
      },
      std::move(needs));
}

}  // namespace

std::vector<Mutant> mutants_in_the_forward() {
  return {
      output_mutant(
          "activation-scaled", "The outputs of stage 1 are scaled by 1.001.", 1,
          [](const at::Tensor& output) { return output.is_floating_point() ? at::mul(output, 1.001) : output; }),
      output_mutant("activation-in-bf16", "The outputs of stage 0 are rounded to bf16.", 0,
                    [](const at::Tensor& output) {
                      return output.is_floating_point() ? output.to(at::kBFloat16).to(output.scalar_type()) : output;
                    },
                    {need::float32}),
      output_mutant("output-detached", "The outputs of stage 1 are detached: no gradient flows through them.", 1,
                    [](const at::Tensor& output) { return output.detach(); }, {need::training}),
      stage_mutant("input-detached", "Stage 1 uses its inputs detached: it returns no gradients.",
                   [](const FaultSite&, int stage) {
                     if (stage != 1) return StageHooks{};
                     return StageHooks{.inputs = [](int, Tensors& inputs) {
                       for (at::Tensor& input : inputs)
                         if (input.defined()) input = input.detach();
                     }};
                   },
                   {need::training}),
      stage_mutant("input-of-previous-microbatch", "Stage 1 uses the inputs of the previous micro-batch.",
                   [](const FaultSite&, int stage) {
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
      stage_mutant("inputs-exchanged", "A stage with two inputs of the same shape exchanges them.",
                   [](const FaultSite&, int) {
                     return StageHooks{.inputs = [](int, Tensors& inputs) {
                       if (inputs.size() > 1 && is_floating(inputs[0]) && is_floating(inputs[1]) &&
                           inputs[0].sizes() == inputs[1].sizes())
                         std::swap(inputs[0], inputs[1]);
                     }};
                   }),
      stage_mutant("outputs-exchanged", "A stage with two outputs of the same shape exchanges them.",
                   [](const FaultSite&, int) {
                     return StageHooks{.outputs = [](int, Tensors& outputs) {
                       if (outputs.size() > 1 && is_floating(outputs[0]) && is_floating(outputs[1]) &&
                           outputs[0].sizes() == outputs[1].sizes())
                         std::swap(outputs[0], outputs[1]);
                     }};
                   }),
      output_mutant("last-row-of-output-zero", "The last row of stage 0's outputs is zero.", 0,
                    [](const at::Tensor& output) {
                      if (!output.is_floating_point() || output.dim() == 0) return output;
                      at::Tensor mask = at::ones_like(output.detach());
                      mask.select(0, -1).zero_();
                      return at::mul(output, mask);
                    }),
      output_mutant("conjugated-output-as-memory",
                    "A conjugated output is passed on as the memory that it views, which is not conjugated.",
                    kEveryStage, [](const at::Tensor& output) { return output.is_conj() ? at::conj(output) : output; },
                    {need::conjugated_numbers}),
      output_mutant("imaginary-part-lost", "A complex output loses its imaginary part.", kEveryStage,
                    [](const at::Tensor& output) {
                      return output.is_complex() ? at::real(output).to(output.scalar_type()) : output;
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
      {"seed-by-rank",
       "Every rank seeds its random layers differently.",
       [](const FaultSite& site) {
         Fault fault;
         fault.options = [site](engine::EngineOptions& options) {
           options.seed += static_cast<uint64_t>(site.rank);
           if (site.rank > 0) site.happens();
         };
         return fault;
       },
       {need::random_layers}},
      options_mutant("one-mask-for-all-stages", "Random layers are seeded by the micro-batch alone.",
                     [](engine::EngineOptions& options) { options.seed_by_microbatch = true; }, {need::random_layers}),
  };
}

}  // namespace plumbline::conformance
