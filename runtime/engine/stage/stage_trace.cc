#include "runtime/engine/stage/stage_trace.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/zeros.h>

#include "runtime/error.h"
#include "runtime/partition/run/missing_tangents.h"
#include "runtime/partition/trace/layout.h"

namespace plumbline::engine {
namespace {

/// Numbers between 0 and 1, the same everywhere; zeros for integers, since zeros are valid indices.
at::Tensor sample_row(int64_t length, at::ScalarType dtype, at::Generator& generator) {
  if (!at::isFloatingType(dtype) && !at::isComplexType(dtype)) return at::zeros({length}, dtype);
  return at::rand({length}, generator, at::kDouble).to(dtype);
}

/// With the strides of `inputs`, or contiguous without them. Gaps and shared elements are kept.
std::vector<at::Tensor> samples(const graph::Graph& graph, std::span<const at::Tensor> inputs) {
  at::Generator generator = at::detail::createCPUGenerator(1);
  std::vector<at::Tensor> made;
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    const graph::Value& value = graph.values[graph.inputs[i].value];
    if (value.kind != graph::ValueKind::Tensor)
      throw InputError("its input '" + graph.inputs[i].name + "' is a number, which a trace would freeze");
    at::Tensor sample = inputs.empty() || !inputs[i].defined() || inputs[i].is_contiguous()
                            ? at::empty(value.sizes, value.dtype)
                            : at::empty_strided(value.sizes, inputs[i].strides(), value.dtype);
    const at::Tensor memory = partition::memory_of(sample);
    memory.copy_(sample_row(memory.numel(), value.dtype, generator));
    made.push_back(sample.requires_grad_(value.requires_grad));
  }
  return made;
}

/// Removes tangents that receive no gradient: the backward is computed without them, and their outputs require none.
void drop_unused_tangents(const graph::Graph& graph, partition::JointTrace& trace,
                          const std::vector<char>& has_gradient) {
  std::vector<char> missing;
  for (int& output : trace.tangent_of) {
    missing.push_back(!has_gradient[output]);
    if (!missing.back()) continue;
    if (!graph.values[graph.outputs[output]].requires_grad)
      throw InputError("its output " + std::to_string(output) +
                       " needed no gradient when the stages were cut, and needs one now that other parameters require "
                       "gradients; make a new engine after changing requires_grad");
    output = -1;
  }
  partition::drop_tangents(trace.graph, missing);
}

}  // namespace

std::vector<char> gradients_that_come_back(const split::Pipe& pipe, int stage) {
  const bool is_last = stage + 1 == pipe.num_stages();
  std::vector<char> has_gradient(pipe.stages[stage].graph.outputs.size(), is_last);
  for (const int b : pipe.stages[stage].outputs)
    if (!is_last) has_gradient[pipe.boundaries[b].output] = pipe.boundaries[b].has_gradient;
  for (const split::LocalLoss& loss : pipe.local_losses)
    if (loss.stage == stage) has_gradient[loss.output] = true;
  return has_gradient;
}

partition::JointTrace trace_stage(const graph::Graph& graph, const std::vector<char>& has_gradient,
                                  std::span<const at::Tensor> inputs) {
  const c10::AutoGradMode grad(true);
  partition::JointTrace trace = partition::trace_joint(graph, samples(graph, inputs));
  drop_unused_tangents(graph, trace, has_gradient);
  return trace;
}

}  // namespace plumbline::engine
