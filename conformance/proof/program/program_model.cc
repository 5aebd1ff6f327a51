#include "conformance/proof/program/program_model.h"

#include <torch/nn/module.h>

#include <algorithm>

#include "conformance/judge/stage_orders.h"
#include "runtime/graph/run/program.h"

namespace plumbline::proof {
namespace {

/// A module that holds tensors and other modules.
class Holder : public torch::nn::Module {
 public:
  using torch::nn::Module::Module;
};

/// The module called `path` below `root`, made where it is missing.
torch::nn::Module& module_at(torch::nn::Module& root, const std::string& path) {
  torch::nn::Module* module = &root;
  for (size_t begin = 0; begin < path.size();) {
    const size_t end = std::min(path.find('.', begin), path.size());
    const std::string name = path.substr(begin, end - begin);
    std::shared_ptr<torch::nn::Module> child;
    for (const auto& item : module->named_children())
      if (item.key() == name) child = item.value();
    if (!child) child = module->register_module(name, std::make_shared<Holder>());
    module = child.get();
    begin = end + 1;
  }
  return *module;
}

/// Copies of the parameters and buffers of `graph`, which uses them from now on.
void take_own_tensors(graph::Graph& graph) {
  for (graph::Attribute& attribute : graph.attributes) {
    if (attribute.kind == graph::AttributeKind::Constant || !attribute.tensor.defined()) continue;
    attribute.tensor = attribute.tensor.detach().clone().set_requires_grad(attribute.tensor.requires_grad());
  }
}

void register_tensors(torch::nn::Module& root, const graph::Graph& graph) {
  for (const graph::Attribute& attribute : graph.attributes) {
    if (attribute.kind == graph::AttributeKind::Constant || !attribute.tensor.defined()) continue;
    const size_t dot = attribute.name.rfind('.');
    const bool is_deep = dot != std::string::npos;
    torch::nn::Module& owner = module_at(root, is_deep ? attribute.name.substr(0, dot) : "");
    const std::string name = is_deep ? attribute.name.substr(dot + 1) : attribute.name;
    if (attribute.kind == graph::AttributeKind::Parameter)
      owner.register_parameter(name, attribute.tensor, attribute.tensor.requires_grad());
    else
      owner.register_buffer(name, attribute.tensor);
  }
}

models::Model make_model(const program::ProgramStep& step) {
  graph::Graph graph = step.prepared.program.graph;
  take_own_tensors(graph);
  std::swap(graph.outputs.at(0), graph.outputs.at(step.prepared.loss.output));
  models::Model model;
  model.module = std::make_shared<Holder>();
  register_tensors(*model.module, graph);
  for (const graph::GraphInput& input : graph.inputs) model.input_names.push_back(input.name);
  model.input_chunks = step.batch.chunks;
  // Stages are told apart by modules that the forward enters. The program enters none, so that all of it is stage 0.
  for (int stage = 1; stage < step.prepared.pipe.num_stages(); ++stage) {
    model.split_points.push_back("stage " + std::to_string(stage));
    model.module->register_module(model.split_points.back(), std::make_shared<Holder>());
  }
  model.forward = [program = graph::Program(graph)](const std::vector<at::Tensor>& inputs) {
    std::vector<at::Tensor> outputs;
    program.run(inputs, outputs);
    return outputs;
  };
  return model;
}

}  // namespace

void add_program(const std::string& name, const program::ProgramStep& step) {
  models::add_model(
      name, [step](reference::Dtype, uint64_t) { return make_model(step); },
      [batch = step.batch](reference::Dtype, int, uint64_t, int) {
        return models::Batch{.inputs = batch.inputs, .targets = batch.target};
      });
}

reference::Case program_case(const std::string& name, const program::ProgramStep& step) {
  reference::Case c;
  c.id = c.model = name;
  c.rows = c.microbatches = step.batch.microbatches;
  c.loss = step.prepared.loss.spec;
  if (!step.prepared.has_backward) c.steps = {StepKind::Eval};
  return c;
}

conformance::Fault with_program_stages(const program::ProgramStep& step) {
  split::Pipe pipe = step.prepared.pipe;
  for (split::Stage& stage : pipe.stages) take_own_tensors(stage.graph);
  std::vector<graph::ValueId>& outputs = pipe.stages.back().graph.outputs;
  std::swap(outputs.at(0), outputs.at(step.prepared.loss.output));
  conformance::Fault fault;
  fault.pipes = [pipe](const engine::PipeSource&) -> engine::PipeSource {
    return [pipe](bool, const std::vector<at::Tensor>&) { return pipe; };
  };
  fault.options = [](engine::EngineOptions& options) { options.keep_strides = true; };
  return fault;
}

std::string why_not_provable(const program::ProgramStep& step, const schedule::Schedule& schedule) {
  const graph::Graph& graph = step.prepared.program.graph;
  const split::Pipe& pipe = step.prepared.pipe;
  for (const graph::Node& node : graph.nodes)
    if (!node.is_split() && draws_random_numbers(node)) return "it draws random numbers";
  if (!pipe.shared.empty())
    return "several stages have a copy of " + pipe.shared.front().name + "; --shared transmit gives it to one";
  const reference::StageOrders orders = conformance::stage_orders(schedule);
  for (size_t stage = 1; stage < orders.size(); ++stage)
    if (orders[stage].at(0).backwards != orders[0].at(0).backwards)
      return "schedule " + schedule.name + ": stage " + std::to_string(stage) +
             " runs its backwards in another order of micro-batches than stage 0";
  return {};
}

}  // namespace plumbline::proof
