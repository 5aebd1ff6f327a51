#include "conformance/proof/executions/unsplit_run.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/div.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/mul.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/nn/module.h>

#include <algorithm>
#include <map>
#include <optional>
#include <span>

#include "conformance/proof/executions/parameter_uses.h"
#include "conformance/proof/executions/replay.h"
#include "conformance/proof/executions/stage_tracker.h"
#include "reference/loss.h"
#include "reference/oracle/case_run.h"
#include "reference/oracle/microbatches.h"
#include "reference/sum_of.h"
#include "runtime/error.h"
#include "runtime/microbatch/random_seed.h"

namespace plumbline::proof {
namespace {

using reference::ResultKind;
using reference::sum_of;

class UnsplitModel : public reference::CaseSubject {
 public:
  UnsplitModel(const reference::Case& c, uint64_t seed, const reference::StageOrders& orders,
               const reference::SavedState& begin, Recorder& recorder, reference::Results& results)
      : case_(c),
        orders_(orders),
        model_(reference::model_of(c, seed, begin)),
        tracker_(*model_.module, models::stage_points(model_, static_cast<int>(orders.size())),
                 [this, seed](int stage) { seed_stage(seed, stage); }),
        recorder_(recorder),
        results_(results) {
    for (const auto& [name, tensor] : parameters()) recorder_.name_leaf(tensor, "parameter", name);
    for (const auto& [name, tensor] : buffers()) recorder_.name_leaf(tensor, "buffer", name);
    if (c.whole_gradients) throw InputError("the gradient of a whole input is not followed to its micro-batches");
    if (buffers().empty()) return;
    for (const std::vector<reference::StageOrder>& copies : orders_)
      for (const reference::StageOrder& copy : copies)
        if (!std::ranges::is_sorted(copy.forwards))
          throw InputError(
              "the model writes buffers, and a stage's forwards are not in the order of micro-batches, "
              "which is that of the unsplit run");
  }

  void train(int step, const models::Batch& batch) override {
    name_batch(recorder_, step, batch);
    model_.module->train();
    const std::vector<models::Batch> chunks =
        reference::divide(case_, model_, batch, case_.microbatches, /*training=*/true);
    const reference::NamedTensors all = parameters();
    std::vector<Accumulation> accumulations;
    for (size_t stage = 0; stage < orders_.size(); ++stage)
      for (const reference::StageOrder& copy : orders_[stage])
        accumulations.push_back({static_cast<int>(stage), copy.backwards, std::vector<at::Tensor>(all.size())});
    std::map<int, ParameterUses> uses;  // by micro-batch, while an accumulation waits for them
    Replays replays;
    for (int m = 0; m < static_cast<int>(chunks.size()); ++m) {
      Ran ran = replayed(replays, step, m, chunks[m], batch);
      put(ran.results);
      uses.emplace(m, std::move(ran.uses));
      for (Accumulation& accumulation : accumulations) accumulate(accumulation, uses);
      std::erase_if(uses, [&](const auto& entry) {
        return std::ranges::none_of(accumulations, [&](const Accumulation& one) { return one.waits_for(entry.first); });
      });
    }
    ++train_steps_;
    const c10::NoGradGuard no_grad;
    for (size_t p = 0; p < all.size(); ++p) {
      at::Tensor sum;
      for (const Accumulation& accumulation : accumulations) sum = sum_of(sum, accumulation.sums[p]);
      if (sum.defined() && case_.division == reference::Division::Engine)
        sum = at::div(sum, static_cast<double>(case_.microbatches));
      all[p].second.mutable_grad() = sum_of(before_[p], sum);
    }
    before_.clear();
  }

  void evaluate(int step, const models::Batch& batch) override {
    name_batch(recorder_, step, batch);
    model_.module->eval();
    const c10::NoGradGuard no_grad;
    const std::vector<models::Batch> chunks =
        reference::divide(case_, model_, batch, case_.microbatches, /*training=*/false);
    for (size_t m = 0; m < chunks.size(); ++m) {
      Named results;
      forward(step, static_cast<int>(m), chunks[m], reference::loss_divisor(case_, batch.targets), results);
      put(results);
    }
  }

  void zero_grad() override {
    for (const auto& [name, parameter] : parameters()) parameter.mutable_grad() = at::Tensor();
  }
  void set_trainable(const std::string& pattern, bool trainable) override {
    reference::set_trainable(parameters(), pattern, trainable);
  }
  reference::NamedTensors parameters() const override {
    return reference::first_names(model_.module->named_parameters());
  }
  reference::NamedTensors buffers() const override { return reference::first_names(model_.module->named_buffers()); }
  double gradient_norm(reference::NormKind) const override {
    throw InputError("the norm of the gradients is a number that leaves the tensors");
  }

 private:
  using Named = std::vector<std::pair<reference::ResultKey, at::Tensor>>;

  /// What a micro-batch of a training step gives.
  struct Ran {
    Named results;
    ParameterUses uses;

    std::vector<at::Tensor> tensors() const {
      std::vector<at::Tensor> all = uses.all();
      for (const auto& [key, tensor] : results) all.push_back(tensor);
      return all;
    }
    /// The same of another micro-batch; `all` in the order of tensors().
    Ran with(int microbatch, std::span<const at::Tensor> all) const {
      Ran other{results, uses.with(all)};
      for (size_t i = 0; i < results.size(); ++i) {
        other.results[i].first.microbatch = microbatch;
        other.results[i].second = all[all.size() - results.size() + i];
      }
      return other;
    }
  };

  /// Of a step on hollow tensors: the first micro-batch, from which others are made if the second one shows that they
  /// can be.
  struct Replays {
    std::optional<Ran> first;
    double weight = 0.0;  ///< of its loss
    std::optional<Replay> replay;
  };

  /// The gradients that one copy of a stage accumulates, micro-batch after micro-batch in its order.
  struct Accumulation {
    int stage;
    std::span<const int> order;    ///< of what is left
    std::vector<at::Tensor> sums;  ///< by parameter

    bool waits_for(int microbatch) const { return std::ranges::find(order, microbatch) != order.end(); }
  };

  /// Adds the micro-batches whose turn it is.
  void accumulate(Accumulation& accumulation, const std::map<int, ParameterUses>& uses) const {
    const c10::NoGradGuard no_grad;
    for (; !accumulation.order.empty(); accumulation.order = accumulation.order.subspan(1)) {
      const auto known = uses.find(accumulation.order.front());
      if (known == uses.end()) return;
      for (const auto& [p, gradient] : known->second.gradients(accumulation.stage)) {
        // A user's hook sees what autograd is about to accumulate.
        const at::Tensor part = case_.parameter_hooks ? at::mul(gradient, 2) : gradient;
        accumulation.sums[p] = sum_of(accumulation.sums[p], part);
      }
    }
  }

  void seed_stage(uint64_t seed, int stage) {
    at::Generator generator = at::detail::getDefaultCPUGenerator();
    const std::lock_guard<std::mutex> lock(generator.mutex());
    generator.set_current_seed(microbatch::stage_random_seed(seed, train_steps_, stage, microbatch_));
  }

  /// backward(), or the same without executing it.
  Ran replayed(Replays& replays, int step, int microbatch, const models::Batch& chunk, const models::Batch& batch) {
    std::vector<at::Tensor> rows = chunk.inputs;
    rows.insert(rows.end(), chunk.targets.begin(), chunk.targets.end());
    const double weight = reference::loss_weight(case_, model_, chunk, batch);
    const bool is_made = replays.replay && weight == replays.weight && replays.replay->make(rows);
    if (is_made && microbatch > 1) {
      replays.replay->note(microbatch);
      return replays.first->with(microbatch, replays.replay->results());
    }
    const bool is_listed = recorder_.on_shapes() && buffers().empty() && microbatch == 0 && case_.microbatches > 2;
    std::vector<Recorder::Computed> computed;
    if (is_listed) recorder_.list_to(&computed);
    Ran ran = backward(step, microbatch, chunk, batch);
    recorder_.list_to(nullptr);
    if (is_listed) {
      replays.replay.emplace(recorder_, computed, rows, ran.tensors());
      replays.weight = weight;
      replays.first = ran;
    }
    if (microbatch == 1 && !(is_made && have_equal_terms(ran.tensors(), replays.replay->results())))
      replays.replay.reset();
    return ran;
  }

  bool have_equal_terms(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) const {
    return std::ranges::equal(
        a, b, {}, [this](const at::Tensor& one) { return recorder_.term_of(one); },
        [this](const at::Tensor& one) { return recorder_.term_of(one); });
  }

  Ran backward(int step, int microbatch, const models::Batch& chunk, const models::Batch& batch) {
    Named results;
    std::vector<at::Tensor> losses =
        forward(step, microbatch, chunk, reference::loss_divisor(case_, batch.targets), results);
    std::erase_if(losses, [](const at::Tensor& loss) { return !loss.requires_grad(); });
    const reference::NamedTensors named = parameters();
    std::vector<at::Tensor> all;
    for (const auto& [name, parameter] : named) all.push_back(parameter);
    ParameterUses uses(losses, all, [this](uint64_t number) { return tracker_.stage_of(number); });
    if (before_.empty())
      for (const at::Tensor& parameter : all) before_.push_back(parameter.grad());
    for (const at::Tensor& parameter : all) parameter.mutable_grad() = at::Tensor();
    if (losses.empty()) return {std::move(results), std::move(uses)};
    std::vector<at::Tensor> weights;
    for (const at::Tensor& loss : losses)
      weights.push_back(at::full_like(loss, reference::loss_weight(case_, model_, chunk, batch)));
    recorder_.enter(-1, microbatch, 'B');
    torch::autograd::backward(losses, weights);
    recorder_.leave();
    for (const at::Tensor& parameter : all) parameter.mutable_grad() = at::Tensor();
    for (size_t i = 0; reference::keeps_details(case_) && i < chunk.inputs.size(); ++i)
      if (chunk.inputs[i].defined() && chunk.inputs[i].grad().defined())
        results.push_back(
            {{step, ResultKind::InputGrad, -1, microbatch, model_.input_names[i]}, chunk.inputs[i].grad()});
    return {std::move(results), std::move(uses)};
  }

  /// Adds outputs and losses to `results`. Returns the losses: that of the outputs, and the auxiliary ones that are not
  /// added to it.
  std::vector<at::Tensor> forward(int step, int microbatch, const models::Batch& chunk, double divisor,
                                  Named& results) {
    microbatch_ = microbatch;
    std::vector<at::Tensor> outputs;
    recorder_.enter(-1, microbatch, 'F');
    tracker_.begin();
    {
      const capture::ModuleObserverScope observing(&tracker_);
      outputs = model_.forward(chunk.inputs);
    }
    std::vector<at::Tensor> losses;
    const auto add_loss = [&](const std::string& name, const at::Tensor& loss) {
      losses.push_back(loss);
      results.push_back({{step, ResultKind::Loss, -1, microbatch, name}, loss});
    };
    if (reference::has_loss(case_.loss, chunk.targets))
      add_loss("loss", reference::compute_loss(case_.loss, outputs, chunk.targets, divisor, model_.loss_parameters));
    const bool in_place = case_.loss.auxiliary == reference::AuxiliaryLosses::InPlace;
    const size_t local = in_place ? model_.auxiliary_losses : 0;
    for (size_t i = outputs.size() - local; i < outputs.size(); ++i)
      if (outputs[i].defined())
        add_loss(models::output_name(model_, i), divisor == 1.0 ? outputs[i] : at::div(outputs[i], divisor));
    recorder_.leave();
    for (size_t i = 0; reference::keeps_details(case_) && i + local < outputs.size(); ++i)
      if (outputs[i].defined())
        results.push_back({{step, ResultKind::Output, -1, microbatch, models::output_name(model_, i)}, outputs[i]});
    return losses;
  }

  void put(const Named& results) {
    for (const auto& [key, tensor] : results) reference::put(results_, key, tensor);
  }

  const reference::Case& case_;
  const reference::StageOrders& orders_;
  models::Model model_;
  StageTracker tracker_;
  Recorder& recorder_;
  reference::Results& results_;
  std::vector<at::Tensor> before_;  ///< the gradients of earlier steps, during a step
  int64_t train_steps_ = 0;
  int microbatch_ = 0;
};

}  // namespace

RankTerms run_unsplit(const reference::Case& c, uint64_t seed, const reference::StageOrders& orders,
                      Recorder& recorder) {
  RankTerms out;
  reference::Results results;
  const reference::SavedState begin = reference::saved_state(c, seed);
  UnsplitModel subject(c, seed, orders, begin, recorder, results);
  const capture::InterposerScope observing(recorder);
  reference::run_case(c, seed, subject, results, begin);
  out.results = terms_of(recorder, results);
  out.log = recorder.take_log();
  return out;
}

}  // namespace plumbline::proof
