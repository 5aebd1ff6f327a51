#include "conformance/proof/rows/same_step.h"

#include <ATen/ops/div.h>
#include <ATen/ops/full_like.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/nn/module.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <utility>

#include "conformance/proof/rows/row_types.h"
#include "reference/loss.h"
#include "reference/named_tensors.h"
#include "reference/oracle/microbatches.h"
#include "reference/oracle/precision.h"
#include "reference/oracle/saved_state.h"
#include "reference/sum_of.h"
#include "runtime/error.h"

namespace plumbline::proof {
namespace {

/// Rounding in float64 stays below, sums that differ lie far above.
constexpr double kRounding = 1e-9;

/// One execution of the step, by the whole batch or by a micro-batch.
struct Execution {
  std::unique_ptr<Tracer> tracer;
  int64_t rows = 0;
  double weight = 1;  ///< with which the engine counts its losses
  std::vector<at::Tensor> gradients = {};
};

/// The difference between tensors, as a part of their size.
class Gap {
 public:
  /// Undefined tensors are zeros.
  void add(const at::Tensor& right, const at::Tensor& found) {
    const auto squares = [](const at::Tensor& tensor) {
      return tensor.defined() ? tensor.to(at::kDouble).square().sum().item().toDouble() : 0.0;
    };
    all_ += squares(right);
    apart_ += right.defined() && found.defined() ? squares(right - found) : squares(right) + squares(found);
  }
  double relative() const { return apart_ == 0 ? 0 : std::sqrt(apart_ / all_); }

 private:
  double all_ = 0, apart_ = 0;
};

class Steps {
 public:
  Steps(const reference::Case& c, uint64_t seed) : case_(c), model_(make_model(c, seed)) {
    reference::convert(*model_.module, reference::Dtype::F64);
    model_.module->train();
    // Gradients of inputs are no part of the step, and hooks see it only.
    case_.input_gradients = false;
  }

  void set_trainable(const std::string& pattern, bool trainable) {
    reference::set_trainable(parameters(), pattern, trainable);
  }

  StepProof prove(const models::Batch& given) {
    const models::Batch batch = in_float64(given);
    // The division by the number of micro-batches is a part of the weight.
    reference::Case undivided = case_;
    undivided.division = reference::Division::Nobody;
    const double divisor = reference::loss_divisor(undivided, batch.targets);
    reference::Case by_rows = case_;
    by_rows.loss.equal_weights = false;
    const double parts_of_step = case_.division == reference::Division::Nobody ? 1 : case_.microbatches;
    const std::vector<at::Tensor> before = saved_buffers();
    const Execution whole =
        execute(batch, 0, reference::loss_weight(by_rows, model_, batch, batch) / parts_of_step, divisor);
    const std::vector<at::Tensor> after = saved_buffers();
    set_buffers(before);
    std::vector<Execution> parts;
    int64_t first_row = 0;
    for (const models::Batch& chunk : reference::divide(case_, model_, batch, case_.microbatches, /*training=*/true)) {
      parts.push_back(
          execute(chunk, first_row, reference::loss_weight(case_, model_, chunk, batch) / parts_of_step, divisor));
      first_row += parts.back().rows;
    }
    Gap gap;
    for (size_t p = 0; p < whole.gradients.size(); ++p) {
      at::Tensor sum;
      for (const Execution& part : parts) sum = reference::sum_of(sum, part.gradients[p]);
      gap.add(whole.gradients[p], sum);
    }
    const reference::NamedTensors now = buffers();
    for (size_t i = 0; i < now.size(); ++i) gap.add(after[i], now[i].second);
    return judged(whole, parts, gap.relative());
  }

 private:
  static models::Model make_model(const reference::Case& c, uint64_t seed) {
    return reference::model_of(c, seed, reference::saved_state(c, seed));
  }

  reference::NamedTensors parameters() const { return reference::first_names(model_.module->named_parameters()); }
  reference::NamedTensors buffers() const { return reference::first_names(model_.module->named_buffers()); }

  static models::Batch in_float64(const models::Batch& batch) {
    models::Batch out;
    for (const at::Tensor& input : batch.inputs)
      out.inputs.push_back(reference::converted(input, reference::Dtype::F64));
    out.targets =
        batch.targets.map([](const at::Tensor& target) { return reference::converted(target, reference::Dtype::F64); });
    return out;
  }

  /// Memory of its own, without gaps: operators take other ways for rows that do not lie together.
  static models::Batch packed(const models::Batch& batch) {
    const auto copy = [](const at::Tensor& tensor) {
      return tensor.defined() ? tensor.detach().clone(at::MemoryFormat::Contiguous) : tensor;
    };
    models::Batch out;
    for (const at::Tensor& input : batch.inputs) out.inputs.push_back(copy(input));
    out.targets = batch.targets.map(copy);
    return out;
  }

  /// The leaves of an execution whose first row is the batch's row `first_row`; returns its number of rows.
  int64_t mark_leaves(Tracer& tracer, const models::Batch& batch, int first_row) const {
    using enum TracedMark::Kind;
    for (const auto& [name, tensor] : parameters()) tracer.mark(Replicated, name, tensor);
    for (const auto& [name, tensor] : buffers()) tracer.mark(Replicated, name, tensor);
    int64_t rows = -1;
    const auto mark_rows = [&](const std::string& name, const at::Tensor& tensor, int64_t dim) {
      if (rows >= 0 && tensor.size(dim) != rows)
        throw InputError(case_.id + ": " + name + " has " + std::to_string(tensor.size(dim)) + " rows, others have " +
                         std::to_string(rows));
      rows = tensor.size(dim);
      tracer.mark(Rows, name, tensor, static_cast<int>(dim), first_row);
    };
    for (size_t i = 0; i < batch.inputs.size(); ++i) {
      const at::Tensor& input = batch.inputs[i];
      const std::string name = "input " + model_.input_names[i];
      if (!input.defined()) continue;
      if (model_.input_chunks[i].replicate)
        tracer.mark(Replicated, name, input);
      else
        mark_rows(name, input, model_.input_chunks[i].dim);
    }
    for (size_t i = 0; i < batch.targets.size(); ++i)
      mark_rows(batch.targets.size() == 1 ? "the target" : "target " + std::to_string(i), batch.targets[i],
                model_.target_chunk.dim);
    if (rows < 0) throw InputError(case_.id + ": no input has rows");
    return rows;
  }

  Execution execute(const models::Batch& given, int64_t first_row, double weight, double divisor) {
    const models::Batch batch = packed(given);
    Execution execution{.tracer = std::make_unique<Tracer>(*model_.module), .weight = weight};
    Tracer& tracer = *execution.tracer;
    execution.rows = mark_leaves(tracer, batch, static_cast<int>(first_row));
    {
      const capture::InterposerScope observing(tracer);
      std::vector<std::pair<std::string, at::Tensor>> losses = forward(tracer, batch, divisor);
      for (const auto& [name, loss] : losses) tracer.mark(TracedMark::Kind::Loss, name, loss);
      std::erase_if(losses, [](const auto& loss) { return !loss.second.requires_grad(); });
      std::vector<at::Tensor> roots, seeds;
      for (const auto& [name, loss] : losses) {
        const reference::Unobserved unobserved;
        roots.push_back(loss);
        seeds.push_back(at::full_like(loss, weight));
        tracer.mark(TracedMark::Kind::Seed, name, seeds.back());
      }
      if (!roots.empty()) torch::autograd::backward(roots, seeds);
    }
    for (const auto& [name, parameter] : parameters()) {
      tracer.mark(TracedMark::Kind::Gradient, name, parameter.grad());
      execution.gradients.push_back(parameter.grad());
      parameter.mutable_grad() = at::Tensor();
    }
    return execution;
  }

  std::vector<std::pair<std::string, at::Tensor>> forward(Tracer& tracer, const models::Batch& batch, double divisor) {
    std::vector<at::Tensor> outputs;
    {
      const capture::ModuleObserverScope observing(&tracer);
      outputs = model_.forward(batch.inputs);
    }
    std::vector<std::pair<std::string, at::Tensor>> losses;
    if (reference::has_loss(case_.loss, batch.targets))
      losses.emplace_back("loss",
                          reference::compute_loss(case_.loss, outputs, batch.targets, divisor, model_.loss_parameters));
    const bool in_place = case_.loss.auxiliary == reference::AuxiliaryLosses::InPlace;
    for (size_t i = outputs.size() - (in_place ? model_.auxiliary_losses : 0); i < outputs.size(); ++i)
      if (outputs[i].defined())
        losses.emplace_back("output " + models::output_name(model_, i),
                            divisor == 1.0 ? outputs[i] : at::div(outputs[i], divisor));
    return losses;
  }

  std::vector<at::Tensor> saved_buffers() const {
    std::vector<at::Tensor> saved;
    for (const auto& [name, buffer] : buffers()) saved.push_back(buffer.detach().clone());
    return saved;
  }
  void set_buffers(const std::vector<at::Tensor>& saved) const {
    const c10::NoGradGuard no_grad;
    const reference::NamedTensors now = buffers();
    for (size_t i = 0; i < now.size(); ++i) now[i].second.copy_(saved[i]);
  }

  StepProof judged(const Execution& whole, const std::vector<Execution>& parts, double difference) const {
    std::vector<const Trace*> traces;
    std::vector<int64_t> rows;
    for (const Execution& part : parts) {
      traces.push_back(&part.tracer->trace());
      rows.push_back(part.rows);
    }
    const StepTypes types = row_types(whole.tracer->trace(), traces, rows);
    StepProof proof;
    proof.values = types.values;
    proof.lemmas = types.lemmas;
    proof.difference = difference;
    add_weights(types, whole, parts, proof);
    const Cause* cause = nullptr;
    const auto blame = [&](int number) {
      const Cause& other = types.causes.at(number);
      if (cause == nullptr || other.event < cause->event) cause = &other;
    };
    for (const auto& [name, type] : types.losses)
      if (type.is(RowType::Kind::NotSeparable)) blame(type.cause);
    for (const auto& [name, type] : types.gradients) {
      if (type.is(RowType::Kind::NotSeparable))
        blame(type.cause);
      else
        proof.gradients.push_back(name);
    }
    if (cause == nullptr)
      for (const int number : types.everywhere) blame(number);
    if (cause != nullptr) {
      const bool differs = !(proof.difference <= kRounding);
      proof.answer = differs ? StepAnswer::Differs : StepAnswer::Undecided;
      proof.why = cause->what;
      proof.op = cause->op;
      proof.module = cause->module;
      return proof;
    }
    const auto other =
        std::ranges::find_if(proof.weights, [](const LossWeight& weight) { return weight.needed != weight.used; });
    if (other == proof.weights.end()) {
      // Types tell what operators do. A program can also exchange memory behind them.
      if (proof.difference <= kRounding) return proof;
      proof.answer = StepAnswer::Differs;
      proof.why = "the results differ, and no operator shows why: a micro-batch takes other operands or other memory";
      return proof;
    }
    proof.answer = StepAnswer::Differs;
    proof.why = other->loss + " of micro-batch " + std::to_string(other->microbatch) + " needs the weight " +
                to_string(other->needed) + " and gets " + to_string(other->used);
    return proof;
  }

  static Rational exact(double number) { return rational_of(number).value(); }

  static void add_weights(const StepTypes& types, const Execution& whole, const std::vector<Execution>& parts,
                          StepProof& proof) {
    for (const auto& [name, type] : types.losses) {
      if (type.is(RowType::Kind::NotSeparable)) continue;
      for (size_t m = 0; m < parts.size(); ++m)
        proof.weights.push_back({name, static_cast<int>(m), exact(whole.weight) * value_of(type.power, types.shares, m),
                                 exact(parts[m].weight)});
    }
  }

  reference::Case case_;
  models::Model model_;
};

}  // namespace

std::string_view answer_name(StepAnswer answer) {
  constexpr std::array<std::string_view, 3> kWords = {"same", "differs", "undecided"};
  return kWords.at(static_cast<size_t>(answer));
}

/// Parameters keep their first values: a proof does not depend on them.
StepProof prove_same_step(const reference::Case& c, uint64_t seed) {
  if (c.divided) throw InputError("the user divides the batch, and its micro-batches make no whole batch");
  if (c.microbatches < 2) throw InputError("its only micro-batch is the whole batch");
  Steps steps(c, seed);
  StepProof all;
  bool trains = false;
  int batches = reference::first_batch(c);
  for (const reference::Step& step : c.steps) {
    if (step == StepKind::Freeze || step == StepKind::Unfreeze)
      steps.set_trainable(step.parameters, step == StepKind::Unfreeze);
    if (step == StepKind::Eval) ++batches;
    if (step != StepKind::Train) continue;
    const int rows = reference::rows_of(c, step);
    if (rows < c.microbatches)
      throw InputError(std::to_string(rows) + " rows are fewer than " + std::to_string(c.microbatches) +
                       " micro-batches");
    StepProof one = steps.prove(models::make_batch(c, rows, seed, batches++));
    one.values += all.values;
    one.lemmas.merge(all.lemmas);
    if (!trains || one.answer != StepAnswer::Same) {
      all = std::move(one);
    } else {
      all.values = one.values;
      all.lemmas = std::move(one.lemmas);
    }
    trains = true;
    if (all.answer != StepAnswer::Same) break;
  }
  if (!trains) throw InputError("it has no train step");
  return all;
}

}  // namespace plumbline::proof
