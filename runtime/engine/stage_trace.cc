#include "runtime/engine/stage_trace.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>

#include "runtime/error.h"
#include "runtime/partition/joint/missing_tangents.h"

namespace plumbline {
namespace {

/// Zeros with the layout of `inputs`, or contiguous where there are none. Zeros are valid indices.
std::vector<at::Tensor> samples(const Graph& graph, std::span<const at::Tensor> inputs) {
  std::vector<at::Tensor> made;
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    const Value& value = graph.values[graph.inputs[i].value];
    if (value.kind != ValueKind::Tensor)
      throw InputError("its input '" + graph.inputs[i].name + "' is a number, which a trace would freeze");
    at::Tensor sample = at::zeros(value.sizes, value.dtype);
    if (!inputs.empty() && !inputs[i].is_contiguous()) {
      sample = inputs[i].detach().clone();  // keeps strides, if they leave no gaps
      sample.zero_();
    }
    made.push_back(sample.requires_grad_(value.requires_grad));
  }
  return made;
}

/// Tangents that no gradient comes for: the backward is that without them, and their outputs require none.
void drop_unused_tangents(JointTrace& trace, const std::vector<char>& has_gradient) {
  std::vector<char> missing;
  for (int& output : trace.tangent_of) {
    missing.push_back(!has_gradient[output]);
    if (missing.back()) output = -1;
  }
  drop_tangents(trace.graph, missing);
}

}  // namespace

std::vector<char> gradients_that_come_back(const Pipe& pipe, int stage) {
  const bool is_last = stage + 1 == pipe.num_stages();
  std::vector<char> has_gradient(pipe.stages[stage].graph.outputs.size(), is_last);
  for (const int b : pipe.stages[stage].outputs)
    if (!is_last) has_gradient[pipe.boundaries[b].output] = pipe.boundaries[b].has_gradient;
  return has_gradient;
}

JointTrace trace_stage(const Graph& graph, const std::vector<char>& has_gradient, std::span<const at::Tensor> inputs) {
  const c10::AutoGradMode grad(true);
  JointTrace trace = trace_joint(graph, samples(graph, inputs));
  drop_unused_tangents(trace, has_gradient);
  return trace;
}

}  // namespace plumbline
