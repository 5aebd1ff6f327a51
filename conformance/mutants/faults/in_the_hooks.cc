// Mutants in users' code round the backward: hooks after an accumulation, hooks on values, and work of layers that
// compute their weight gradients apart from autograd.
#include <ATen/core/grad_mode.h>
#include <ATen/ops/sub.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "conformance/mutants/faults/pipe_fault.h"
#include "conformance/mutants/mutants.h"
#include "conformance/mutants/options_mutant.h"

namespace plumbline::conformance {
namespace {

using torch::autograd::PostAccumulateGradHook;

/// One call of a hook after an accumulation.
struct HookCall {
  PostAccumulateGradHook& hook;
  const at::Tensor& parameter;
  at::Tensor before;  ///< .grad in the previous call of this step
  int number;         ///< counts the calls of the step
  bool is_last;

  /// Calls the hook while .grad is `grad`.
  void with(const at::Tensor& grad) const {
    const at::Tensor now = std::exchange(parameter.mutable_grad(), grad);
    hook(parameter);
    parameter.mutable_grad() = now;
  }
};

/// Around the hook of one parameter; `change` calls it rightly or not, and returns whether it called it otherwise.
class ChangedHook : public PostAccumulateGradHook {
 public:
  ChangedHook(std::unique_ptr<PostAccumulateGradHook> inner, const FaultSite& site, bool (*change)(const HookCall&))
      : inner_(std::move(inner)), site_(site), change_(change) {}
  void operator()(const torch::autograd::Variable& parameter) override {
    const c10::NoGradGuard no_grad;
    const int number = calls_++ % site_.microbatches();
    if (number == 0) before_ = at::Tensor();
    if (change_({*inner_, parameter, before_, number, number + 1 == site_.microbatches()})) site_.happens();
    before_ = parameter.grad().clone();
  }

 private:
  std::unique_ptr<PostAccumulateGradHook> inner_;
  FaultSite site_;
  bool (*change_)(const HookCall&);
  int calls_ = 0;
  at::Tensor before_;
};

Mutant after_hook(std::string name, std::string what, bool (*change)(const HookCall&)) {
  return {std::move(name),
          std::move(what),
          [change](const FaultSite& site) {
            Fault fault;
            // A stage is built again for evaluations, with the same parameters.
            auto known = std::make_shared<std::set<int>>();
            fault.stage = [site, change, known](int stage, const split::StageState& state,
                                                std::unique_ptr<engine::StageRunner> inner) {
              if (known->insert(stage).second)
                for (const auto& [parameter_name, parameter] : state.parameters)
                  if (auto& hook = torch::autograd::impl::post_acc_grad_hooks(parameter); hook)
                    hook = std::make_unique<ChangedHook>(std::move(hook), site, change);
              return inner;
            };
            return fault;
          },
          {need::accumulation_hooks}};
}

bool is_value_hook(const graph::Node& node) {
  return node.op && node.op->schema().name() == "plumbline::gradient_hook";
}

/// Changes the graph of a stage; `stage` counts from 0.
using GraphChange = std::function<bool(graph::Graph& graph, int stage)>;

Mutant value_hook(std::string name, std::string what, GraphChange change) {
  return {std::move(name),
          std::move(what),
          [change = std::move(change)](const FaultSite& site) {
            return pipe_fault([site, change](bool training, split::Pipe& pipe) {
              for (int stage = 0; stage < pipe.num_stages(); ++stage)
                if (training && change(pipe.stages[stage].graph, stage)) site.happens();
            });
          },
          {need::value_hooks}};
}

void set_hook(graph::Node& node, double factor, double limit) {
  node.arguments.at(1).constant = factor;
  node.arguments.at(2).constant = limit;
}

void remove_hook(graph::Node& node) { set_hook(node, 1, std::numeric_limits<double>::infinity()); }

GraphChange without(bool (*lost)(const graph::Graph&, const graph::Node&, int stage)) {
  return [lost](graph::Graph& graph, int stage) {
    bool any = false;
    for (graph::Node& node : graph.nodes)
      if (is_value_hook(node) && lost(graph, node, stage)) {
        remove_hook(node);
        any = true;
      }
    return any;
  };
}

bool crosses(const graph::Graph& graph, const graph::Node& node, int stage) {
  const graph::ValueId taken = node.arguments.at(0).values.at(0), made = node.results.at(0).values.at(0);
  return std::ranges::find(graph.outputs, made) != graph.outputs.end() ||
         (stage > 0 && std::ranges::find(graph.inputs, taken, &graph::GraphInput::value) != graph.inputs.end());
}

bool squares_factor(graph::Graph& graph, int) {
  bool any = false;
  for (graph::Node& node : graph.nodes) {
    if (!is_value_hook(node)) continue;
    const double factor = node.arguments.at(1).constant.toDouble();
    set_hook(node, factor * factor, node.arguments.at(2).constant.toDouble());
    any = any || factor * factor != factor;
  }
  return any;
}

/// Replaces the value in all arguments behind the first that has it, by one new value for each.
std::vector<graph::ValueId> own_value_for_each_reader(graph::Graph& graph, graph::ValueId value) {
  std::vector<graph::ValueId> own;
  bool first = true;
  const auto change = [&](graph::ValueId& used) {
    if (used != value || std::exchange(first, false)) return;
    used = graph.add_value(graph::Value(graph.values[value]));
    own.push_back(used);
  };
  for (graph::Node& node : graph.nodes)
    for (graph::Argument& argument : node.arguments) std::ranges::for_each(argument.values, change);
  std::ranges::for_each(graph.outputs, change);
  return own;
}

bool hooks_each_reader(graph::Graph& graph, int) {
  bool any = false;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    if (!is_value_hook(graph.nodes[i])) continue;
    for (const graph::ValueId value : own_value_for_each_reader(graph, graph.nodes[i].results.at(0).values.at(0))) {
      graph::Node own = graph.nodes[i];
      own.results.at(0).values.at(0) = value;
      graph.nodes.insert(graph.nodes.begin() + static_cast<std::ptrdiff_t>(++i), std::move(own));
      for (graph::ModuleCall& call : graph.module_calls) {
        if (call.begin >= static_cast<int32_t>(i)) ++call.begin;
        if (call.end >= static_cast<int32_t>(i)) ++call.end;
      }
      any = true;
    }
  }
  return any;
}

using Work = engine::WeightWork;

/// `change` receives the work of a micro-batch, and returns that which the engine executes in its place.
Mutant closures(std::string name, std::string what, std::function<Work(Work work, int stage, int microbatch)> change) {
  return options_mutant(std::move(name), std::move(what),
                        [change = std::move(change)](engine::EngineOptions& options) {
                          options.weight_work = [right = options.weight_work, change](int stage, int microbatch) {
                            return change(right(stage, microbatch), stage, microbatch);
                          };
                        },
                        {need::weight_closures});
}

}  // namespace

std::vector<Mutant> mutants_in_the_hooks() {
  return {
      after_hook("after-hook-lost", "Hooks after an accumulation are not called.",
                 [](const HookCall&) { return true; }),
      after_hook("after-hook-twice", "Hooks after an accumulation are called twice.",
                 [](const HookCall& call) {
                   call.hook(call.parameter);
                   call.hook(call.parameter);
                   return true;
                 }),
      after_hook("after-hook-early", "Hooks after an accumulation are called before it.",
                 [](const HookCall& call) {
                   call.with(call.before);
                   return true;
                 }),
      after_hook("after-hook-of-part", "Hooks after an accumulation find the micro-batch's own gradient.",
                 [](const HookCall& call) {
                   const bool has_earlier = call.before.defined();
                   call.with(has_earlier ? at::sub(call.parameter.grad(), call.before) : call.parameter.grad());
                   return has_earlier;
                 }),
      after_hook("after-hook-at-the-end", "Hooks after an accumulation are called after the last micro-batch only.",
                 [](const HookCall& call) {
                   if (call.is_last) call.hook(call.parameter);
                   return !call.is_last;
                 }),
      value_hook("value-hook-lost", "Hooks on values are not called.",
                 without([](const graph::Graph&, const graph::Node&, int) { return true; })),
      value_hook("value-hook-lost-at-borders", "Hooks on values that cross to other stages are not called.",
                 without(&crosses)),
      value_hook("value-hook-twice", "Hooks on values are called twice.", &squares_factor),
      value_hook("value-hook-for-each-reader", "A hook on a value with several readers is called for each of them.",
                 &hooks_each_reader),
      closures("closures-lost", "The work of layers that compute their weight gradients is not called.",
               [](Work, int, int) { return Work(); }),
      closures("closures-twice", "The work of layers that compute their weight gradients is called twice.",
               [](Work work, int, int) -> Work {
                 if (!work) return work;
                 return [work] {
                   work();
                   work();
                 };
               }),
      closures("closures-first-lost", "The work of the first micro-batch's weight gradients is not called.",
               [](Work work, int, int microbatch) { return microbatch == 0 ? Work() : work; }),
      closures("closures-late", "The work of a micro-batch's weight gradients is called with that of the next one.",
               [waiting = std::map<int, Work>()](Work work, int stage, int) mutable {
                 return std::exchange(waiting[stage], std::move(work));
               }),
  };
}

}  // namespace plumbline::conformance
