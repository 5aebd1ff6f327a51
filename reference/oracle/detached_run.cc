#include "reference/oracle/detached_run.h"

#include <ATen/ops/div.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/nn/module.h>

#include <algorithm>
#include <numeric>

#include "reference/hooks.h"
#include "reference/loss.h"
#include "reference/oracle/case_run.h"
#include "reference/oracle/gradient_norm.h"
#include "reference/oracle/microbatches.h"
#include "reference/oracle/precision.h"
#include "reference/sum_of.h"
#include "runtime/error.h"
#include "runtime/graph/device.h"
#include "runtime/graph/run/program.h"
#include "runtime/graph/run/random_turn.h"
#include "runtime/microbatch/random_seed.h"
#include "runtime/split/materialize.h"
#include "runtime/split/module_pipe.h"

namespace plumbline::reference {
namespace {

/// One micro-batch of one step: the inputs, outputs and received gradients of each stage.
struct Lane {
  std::vector<at::Tensor> inputs;
  Targets targets;
  at::Tensor loss;
  std::vector<at::Tensor> local_losses;  ///< by position in split::Pipe::local_losses
  double divisor = 1.0;
  double weight = 1.0;  ///< the gradient from which the backward of the losses begins
  split::Pipe pipe;
  std::vector<graph::Frame> stages;
  std::vector<std::vector<at::Tensor>> stage_inputs, stage_outputs, stage_input_grads;
};

void require_complete(const std::vector<StageOrder>& copies, std::vector<int> StageOrder::* order, int microbatches,
                      size_t stage, const char* what) {
  std::vector<int> sorted, all(microbatches);
  for (const StageOrder& copy : copies) sorted.insert(sorted.end(), (copy.*order).begin(), (copy.*order).end());
  std::sort(sorted.begin(), sorted.end());
  std::iota(all.begin(), all.end(), 0);
  if (sorted != all)
    throw Error("detached run: the " + std::string(what) + " of stage " + std::to_string(stage) +
                " do not contain every micro-batch exactly once");
}

class DetachedStages : public CaseSubject {
 public:
  DetachedStages(const Case& c, uint64_t seed, const StageOrders& orders, std::optional<Dtype> dtype,
                 c10::Device device, DetachedObserver* observer, const SavedState& begin, Results& results)
      : case_(c),
        seed_(seed),
        dtype_(dtype),
        device_(device),
        orders_(orders),
        model_(model_of(c, seed, begin)),
        observer_(observer),
        results_(results) {
    convert(*model_.module, dtype);
    split_ = models::case_split(c, model_, static_cast<int>(orders.size()));
    const bool trains = std::find(c.steps.begin(), c.steps.end(), StepKind::Train) != c.steps.end();
    for (size_t s = 0; s < orders_.size(); ++s) {
      require_complete(orders_[s], &StageOrder::forwards, case_.microbatches, s, "forwards");
      if (trains) require_complete(orders_[s], &StageOrder::backwards, case_.microbatches, s, "backwards");
    }
  }

  void train(int step, const models::Batch& batch) override {
    if (observer_ != nullptr) observer_->begins(step, batch);
    std::vector<Lane> lanes = make_lanes(batch, /*training=*/true);
    std::map<const void*, at::Tensor> before;
    for_each_parameter([&](int, const std::string&, const at::Tensor& parameter) {
      before[parameter.unsafeGetTensorImpl()] = parameter.grad();
      parameter.mutable_grad() = at::Tensor();
    });
    carry_out(step, lanes, /*training=*/true);
    ++train_steps_;
    for (size_t i = 0; case_.whole_gradients && keeps_details(case_) && i < given_.inputs.size(); ++i)
      if (given_.inputs[i].defined() && given_.inputs[i].grad().defined())
        put(results_, {step, ResultKind::InputGrad, -1, -1, model_.input_names[i]}, given_.inputs[i].grad());
    const c10::NoGradGuard no_grad;
    sum_copies();
    for_each_parameter([&](int, const std::string&, const at::Tensor& parameter) {
      at::Tensor& grad = parameter.mutable_grad();
      if (grad.defined() && case_.division == Division::Engine) grad = grad / case_.microbatches;
      grad = sum_of(before.at(parameter.unsafeGetTensorImpl()), grad);
    });
  }

  void evaluate(int step, const models::Batch& batch) override {
    if (observer_ != nullptr) observer_->begins(step, batch);
    const c10::NoGradGuard no_grad;
    std::vector<Lane> lanes = make_lanes(batch, /*training=*/false);
    carry_out(step, lanes, /*training=*/false);
  }

  void zero_grad() override {
    for_each_parameter(
        [](int, const std::string&, const at::Tensor& parameter) { parameter.mutable_grad() = at::Tensor(); });
  }

  void set_trainable(const std::string& pattern, bool trainable) override {
    // A capture reads the flags of the model's parameters.
    plumbline::reference::set_trainable(first_names(model_.module->named_parameters()), pattern, trainable);
    plumbline::reference::set_trainable(parameters(), pattern, trainable);
  }

  NamedTensors parameters() const override {
    NamedTensors out;
    for (const split::StageState& state : states_)
      for (const auto& item : state.parameters) out.push_back(item);
    return out;
  }
  NamedTensors buffers() const override {
    NamedTensors out;
    for (const split::StageState& state : states_)
      for (const auto& item : state.buffers) out.push_back(item);
    return out;
  }
  double gradient_norm(NormKind kind) const override {
    return plumbline::reference::gradient_norm(parameters(), kind, case_.dtype);
  }

 private:
  template <class Visit>
  void for_each_parameter(Visit&& visit) {
    for (size_t s = 0; s < states_.size(); ++s)
      for (const auto& [name, parameter] : states_[s].parameters) visit(static_cast<int>(s), name, parameter);
  }

  models::Batch cast(const models::Batch& batch) const {
    models::Batch out;
    for (const at::Tensor& input : batch.inputs) out.inputs.push_back(there(converted(input, dtype_)));
    out.targets = batch.targets.map([&](const at::Tensor& target) { return there(converted(target, dtype_)); });
    for (const models::Batch& part : batch.parts) out.parts.push_back(cast(part));
    return out;
  }

  at::Tensor there(const at::Tensor& tensor) const {
    return tensor.defined() && !device_.is_cpu() ? tensor.to(device_) : tensor;
  }

  std::vector<Lane> make_lanes(const models::Batch& batch, bool training) {
    const Unobserved unobserved;
    const int count = case_.microbatches;
    given_ = training && case_.whole_gradients ? with_leaves(cast(batch)) : cast(batch);
    std::vector<models::Batch> chunks = divide(case_, model_, given_, count, training);
    std::vector<Lane> lanes(count);
    for (int m = 0; m < count; ++m) {
      if (training) lanes[m].weight = loss_weight(case_, model_, chunks[m], given_);
      lanes[m].inputs = std::move(chunks[m].inputs);
      lanes[m].targets = chunks[m].targets;
    }
    for (Lane& lane : lanes) {
      lane.divisor = loss_divisor(case_, batch.targets);
      lane.pipe = split::make_pipe({model_.module.get(), model_.forward, model_.input_names},
                                   graph::on_host(lane.inputs), training, split_);
    }
    const auto stages_of = [](const Lane& lane) { return lane.pipe.num_stages(); };
    const Lane& longest = *std::ranges::max_element(lanes, {}, stages_of);
    for (int s = static_cast<int>(states_.size()); s < stages_of(longest); ++s)
      add_state(split::make_stage_state(longest.pipe, s, device_));
    for (Lane& lane : lanes) {
      for (int s = 0; s < lane.pipe.num_stages(); ++s) {
        split::bind(lane.pipe.stages[s].graph, states_[s], device_);
        lane.stages.emplace_back(graph::Program(lane.pipe.stages[s].graph));
      }
      const size_t stages = orders_.size();
      PLUMBLINE_CHECK(lane.stages.size() == stages || (!training && split_.exits_early),
                      "the number of stages differs from the requested one");
      lane.stage_inputs.resize(stages);
      lane.stage_outputs.resize(stages);
      lane.stage_input_grads.resize(stages);
    }
    shared_ = longest.pipe.shared;
    return lanes;
  }

  void add_state(split::StageState state) {
    if (observer_ != nullptr) observer_->holds(state);
    CountedHooks hooks;
    for (const auto& [name, parameter] : state.parameters) {
      if (case_.parameter_hooks) hooks.add(name, parameter);
      if (case_.accumulation_hooks) hooks.add_after(name, parameter);
    }
    states_.push_back(std::move(state));
    hooks_.push_back(std::move(hooks));
  }

  void carry_out(int step, std::vector<Lane>& lanes, bool training) {
    const int stages = static_cast<int>(orders_.size());
    for (int s = 0; s < stages; ++s)
      for (const StageOrder& copy : orders_[s])
        for (int m : copy.forwards) forward(step, lanes[m], s, m, training);
    if (!training) return;
    accumulated_.assign(stages, {});
    for (int s = stages - 1; s >= 0; --s)
      for (const StageOrder& copy : orders_[s]) {
        for (int m : copy.backwards) backward(step, lanes[m], s, m);
        accumulated_[s].push_back(take_gradients(s));
      }
  }

  using Gradients = std::map<std::string, at::Tensor>;

  /// The accumulated gradients of a copy of the stage; the next copy starts without any.
  Gradients take_gradients(int stage) {
    Gradients gradients;
    for (const auto& [name, parameter] : states_[stage].parameters) {
      gradients[name] = parameter.grad();
      parameter.mutable_grad() = at::Tensor();
    }
    return gradients;
  }

  void forward(int step, Lane& lane, int stage, int microbatch, bool training) {
    if (stage >= lane.pipe.num_stages()) return;  // it left the pipeline before
    const split::Stage& part = lane.pipe.stages[stage];
    std::vector<at::Tensor>& inputs = lane.stage_inputs[stage];
    if (stage == 0) inputs = split::given_inputs(lane.inputs);
    for (int b : part.inputs) {
      const split::Boundary& boundary = lane.pipe.boundaries[b];
      const at::Tensor& value = lane.stage_outputs[boundary.producer][boundary.output];
      inputs.push_back(
          value.detach().clone(at::MemoryFormat::Contiguous).requires_grad_(training && boundary.value.requires_grad));
      if (case_.boundary_hooks) hooks_[stage].watch(boundary.name, inputs.back());
    }
    {
      const graph::RandomTurn seeded(microbatch::stage_random_seed(seed_, train_steps_, stage, microbatch), device_);
      lane.stages[stage].run(inputs, lane.stage_outputs[stage]);
    }
    const std::vector<at::Tensor>& outputs = lane.stage_outputs[stage];
    for (int b : part.outputs)
      if (keeps_details(case_))
        put(results_, {step, ResultKind::Forward, stage, microbatch, lane.pipe.boundaries[b].name},
            outputs[lane.pipe.boundaries[b].output]);
    take_local_losses(step, lane, stage, microbatch);
    if (stage + 1 < lane.pipe.num_stages()) return;
    for (size_t i = 0; keeps_details(case_) && i < outputs.size(); ++i)
      if (outputs[i].defined() && std::ranges::find(split_.local_losses, i) == split_.local_losses.end())
        put(results_, {step, ResultKind::Output, -1, microbatch, models::output_name(model_, i)}, outputs[i]);
    if (!has_loss(case_.loss, lane.targets)) return;
    lane.loss = compute_loss(case_.loss, outputs, lane.targets, lane.divisor,
                             loss_parameters(case_.loss, states_[stage].parameters));
    put(results_, {step, ResultKind::Loss, -1, microbatch, "loss"}, lane.loss);
  }

  void take_local_losses(int step, Lane& lane, int stage, int microbatch) {
    lane.local_losses.resize(lane.pipe.local_losses.size());
    for (size_t i = 0; i < lane.local_losses.size(); ++i) {
      const split::LocalLoss& local = lane.pipe.local_losses[i];
      if (local.stage != stage) continue;
      const at::Tensor& made = lane.stage_outputs[stage][local.output];
      lane.local_losses[i] = lane.divisor == 1.0 ? made : at::div(made, lane.divisor);
      put(results_, {step, ResultKind::Loss, -1, microbatch, models::output_name(model_, local.model_output)},
          lane.local_losses[i]);
    }
  }

  void backward(int step, Lane& lane, int stage, int microbatch) {
    const split::Stage& part = lane.pipe.stages[stage];
    std::vector<at::Tensor> roots, grads;
    if (stage + 1 == lane.pipe.num_stages()) {
      if (lane.loss.requires_grad()) {
        roots.push_back(lane.loss);
        grads.push_back(at::full_like(lane.loss, lane.weight));
      }
    } else {
      for (int b : part.outputs) {
        const split::Boundary& boundary = lane.pipe.boundaries[b];
        if (!boundary.has_gradient) continue;
        at::Tensor grad;
        for (auto consumer = boundary.consumers.rbegin(); consumer != boundary.consumers.rend(); ++consumer)
          grad = sum_of(grad, lane.stage_input_grads[consumer->stage][consumer->input]);
        roots.push_back(lane.stage_outputs[stage][boundary.output]);
        grads.push_back(grad);
      }
    }
    for (size_t i = 0; i < lane.local_losses.size(); ++i) {
      const at::Tensor& local = lane.local_losses[i];
      if (lane.pipe.local_losses[i].stage != stage || !local.requires_grad()) continue;
      roots.push_back(local);
      grads.push_back(at::full_like(local, lane.weight));
    }
    // Autograd itself never accumulates (sum_of.h).
    const Gradients earlier = take_gradients(stage);
    if (!roots.empty()) torch::autograd::backward(roots, grads);
    for (const auto& [name, parameter] : states_[stage].parameters)
      parameter.mutable_grad() = sum_of(earlier.at(name), parameter.grad());
    std::vector<at::Tensor>& input_grads = lane.stage_input_grads[stage];
    for (const at::Tensor& input : lane.stage_inputs[stage])
      input_grads.push_back(input.defined() && input.is_leaf() && input.grad().defined() ? input.grad().contiguous()
                                                                                         : at::Tensor());
    for (size_t i = 0; i < part.inputs.size(); ++i) {
      const split::Boundary& boundary = lane.pipe.boundaries[part.inputs[i]];
      if (!boundary.has_gradient) continue;
      if (!input_grads[i].defined()) input_grads[i] = at::zeros_like(lane.stage_inputs[stage][i]).detach();
      if (!keeps_details(case_)) continue;
      put(results_, {step, ResultKind::Backward, stage, microbatch, boundary.name}, input_grads[i]);
      if (case_.boundary_hooks) put_hook_calls(step, stage, microbatch, boundary.name);
    }
    for (size_t i = 0; stage == 0 && keeps_details(case_) && i < lane.inputs.size(); ++i)
      if (case_.input_gradients && !case_.whole_gradients && lane.inputs[i].defined() &&
          lane.inputs[i].grad().defined())
        put(results_, {step, ResultKind::InputGrad, -1, microbatch, model_.input_names[i]}, lane.inputs[i].grad());
    for (const auto& [name, parameter] : states_[stage].parameters) {
      if (!keeps_details(case_) || !parameter.grad().defined()) continue;
      put(results_, {step, ResultKind::Partial, stage, microbatch, name}, parameter.grad());
      if (case_.parameter_hooks || case_.accumulation_hooks) put_hook_calls(step, stage, microbatch, name);
      // The hook of this executor sees the part of one micro-batch; a user's sees the sum.
      if (case_.accumulation_hooks)
        put(results_, {step, ResultKind::Accumulated, stage, microbatch, name}, parameter.grad());
    }
    lane.stage_outputs[stage].clear();
    lane.stage_inputs[stage].clear();
  }

  void put_hook_calls(int step, int stage, int microbatch, const std::string& name) {
    put(results_, {step, ResultKind::HookCalls, stage, microbatch, name},
        at::scalar_tensor(hooks_[stage].take(name), at::kLong));
  }

  at::Tensor sum_over(const std::vector<int>& stages, const std::string& name) const {
    at::Tensor sum;
    for (int stage : stages)
      for (const Gradients& copy : accumulated_[stage]) sum = sum_of(sum, copy.at(name));
    return sum;
  }

  void sum_copies() {
    for (int s = 0; s < static_cast<int>(states_.size()); ++s)
      for (const auto& [name, parameter] : states_[s].parameters) parameter.mutable_grad() = sum_over({s}, name);
    for (const split::SharedParameter& parameter : shared_) {
      const at::Tensor sum = sum_over(parameter.stages, parameter.name);
      for (int stage : parameter.stages)
        states_[stage].parameters.at(parameter.name).mutable_grad() = sum.defined() ? sum.clone() : sum;
    }
  }

  const Case& case_;
  uint64_t seed_;
  std::optional<Dtype> dtype_;
  c10::Device device_;
  StageOrders orders_;
  models::Model model_;
  models::Batch given_;  ///< of the current step
  split::SplitOptions split_;
  std::vector<split::StageState> states_;
  std::vector<CountedHooks> hooks_;  ///< by stage
  std::vector<split::SharedParameter> shared_;
  std::vector<std::vector<Gradients>> accumulated_;  ///< [stage][copy], for the current step
  DetachedObserver* observer_;                       ///< may be null
  Results& results_;
  int64_t train_steps_ = 0;
};

}  // namespace

Results run_detached(const Case& c, uint64_t seed, const StageOrders& orders, std::optional<Dtype> dtype,
                     c10::Device device, DetachedObserver* observer) {
  Results results;
  const SavedState begin = saved_state(c, seed);
  DetachedStages subject(c, seed, orders, dtype, device, observer, begin, results);
  run_case(c, seed, subject, results, begin);
  return results;
}

}  // namespace plumbline::reference
