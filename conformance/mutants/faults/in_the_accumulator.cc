// Mutants in the sum of parameter gradients over micro-batches.
#include <ATen/ops/add.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/neg.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/zeros_like.h>

#include <map>

#include "conformance/mutants/change_bytes.h"
#include "conformance/mutants/hooked_stage.h"
#include "conformance/mutants/mutants.h"
#include "reference/sum_of.h"

namespace plumbline::conformance {
namespace {

using reference::sum_of;

/// One addition: the `part` of a micro-batch to the gradient accumulated `before`.
struct Addition {
  int microbatch;
  const std::string& name;
  const at::Tensor &before, &part, &parameter;
  bool is_first, is_last;  ///< of the step's micro-batches, by number
  bool in_halves;          ///< whether the schedule has weight halves

  at::Tensor right() const { return sum_of(before, part); }
};

using Add = std::function<at::Tensor(const Addition& addition)>;

/// `add` is copied for each stage, with the state that it captures.
Mutant accumulator(std::string name, std::string what, Add add, std::vector<Need> needs = {need::training}) {
  needs.push_back(need::plain_accumulation);
  return {std::move(name), std::move(what),
          [add = std::move(add)](const FaultSite& site) {
            return stage_fault(site, [last = site.microbatches() - 1, add, in_halves = has_halves(site.schedule)](
                                         int, const split::StageState& state) {
              return StageHooks{
                  .accumulate = [last, add, in_halves, &state](int microbatch, const std::string& parameter,
                                                               const at::Tensor& before, const at::Tensor& part) {
                    return add(Addition{microbatch, parameter, before, part, state.parameters.at(parameter),
                                        microbatch == 0, microbatch == last, in_halves});
                  }};
            });
          },
          std::move(needs)};
}

bool is_bias(const std::string& name) { return name.ends_with("bias"); }

bool is_of_loss(const std::string& name) { return name.starts_with("loss."); }

}  // namespace

std::vector<Mutant> mutants_in_the_accumulator() {
  const std::vector<Need> several = {need::training, need::several_microbatches};
  return {
      accumulator("drop-last-microbatch", "The last micro-batch's parameter gradients are dropped.",
                  [](const Addition& a) { return a.is_last ? a.before : a.right(); }),
      accumulator("drop-first-microbatch", "The first micro-batch's parameter gradients are dropped.",
                  [](const Addition& a) { return a.is_first ? a.before : a.right(); }),
      accumulator("double-last-microbatch", "The last micro-batch's parameter gradients are added twice.",
                  [](const Addition& a) { return a.is_last ? sum_of(a.right(), a.part) : a.right(); }),
      accumulator(
          "overwritten", "Each micro-batch's parameter gradients replace the earlier ones.",
          [](const Addition& a) { return a.part.defined() ? a.part : a.before; }, several),
      accumulator("accumulated-in-bf16", "Parameter gradients are rounded to bf16 after every micro-batch.",
                  [](const Addition& a) {
                    const at::Tensor sum = a.right();
                    return sum.defined() ? sum.to(at::kBFloat16).to(sum.scalar_type()) : sum;
                  },
                  {need::training, need::float32}),
      accumulator("accumulated-in-fp32", "Gradients of bf16 parameters are delivered in float32.",
                  [](const Addition& a) {
                    const at::Tensor sum = a.right();
                    return sum.defined() ? sum.to(at::kFloat) : sum;
                  },
                  {need::training, need::bf16}),
      accumulator(
          "added-in-reverse", "The micro-batches of a parameter's gradient are summed last to first.",
          [parts = std::map<std::string, Tensors>()](const Addition& a) mutable {
            Tensors& mine = parts[a.name];
            if (!a.before.defined()) mine.clear();
            if (a.part.defined()) mine.push_back(a.part.clone());
            at::Tensor sum;
            for (size_t i = mine.size(); i-- > 0;) sum = sum_of(sum, mine[i]);
            return sum;
          },
          several),
      accumulator(
          "bias-of-first-microbatch", "Biases get the first micro-batch's gradient only.",
          [](const Addition& a) { return is_bias(a.name) && a.before.defined() ? a.before : a.right(); }, several),
      accumulator("bias-sign", "The gradients of biases are subtracted.",
                  [](const Addition& a) {
                    return is_bias(a.name) && a.part.defined() ? sum_of(a.before, at::neg(a.part)) : a.right();
                  }),
      accumulator("weight-transposed", "The gradients of square weights are transposed.",
                  [](const Addition& a) {
                    const bool square = a.part.defined() && a.part.dim() == 2 && a.part.size(0) == a.part.size(1);
                    return square ? sum_of(a.before, a.part.t().contiguous()) : a.right();
                  }),
      accumulator("weight-scaled", "The gradients of weights are scaled by 1.001.",
                  [](const Addition& a) {
                    return !is_bias(a.name) && a.part.defined() ? sum_of(a.before, at::mul(a.part, 1.001)) : a.right();
                  }),
      accumulator("loss-parameters-lost-in-halves", "Weight halves leave out the gradients of the loss's parameters.",
                  [](const Addition& a) { return a.in_halves && is_of_loss(a.name) ? a.before : a.right(); },
                  {need::halves, need::loss_parameters}),
      accumulator("last-row-forgotten", "The last row of every parameter's gradient stays zero.",
                  [](const Addition& a) {
                    at::Tensor sum = a.right();
                    if (!sum.defined() || sum.dim() == 0) return sum;
                    sum = sum.clone();
                    sum.select(0, -1).zero_();
                    return sum;
                  }),
      accumulator("last-bit-of-sum", "One element of each gradient is off by its last bit after the last micro-batch.",
                  [](const Addition& a) {
                    at::Tensor sum = a.right();
                    if (!sum.defined() || !a.is_last) return sum;
                    sum = sum.clone(at::MemoryFormat::Contiguous);
                    flip_last_bit(sum);
                    return sum;
                  }),
      accumulator(
          "frozen-learns", "Frozen parameters get gradients.",
          [](const Addition& a) { return a.parameter.requires_grad() ? a.right() : at::ones_like(a.parameter); }),
      accumulator("zeros-for-none", "A parameter without a gradient gets zeros.",
                  [](const Addition& a) {
                    const at::Tensor sum = a.right();
                    return sum.defined() ? sum : at::zeros_like(a.parameter).detach();
                  }),
  };
}

}  // namespace plumbline::conformance
