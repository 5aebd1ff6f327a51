#include "runtime/split/materialize.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty_strided.h>

#include "runtime/error.h"
#include "runtime/graph/device.h"

namespace plumbline::split {

StageState make_stage_state(const Pipe& pipe, int stage, const MakeTensor& make) {
  StageState state;
  for (const graph::Attribute& attribute : pipe.stages.at(stage).graph.attributes) {
    if (attribute.kind == graph::AttributeKind::Constant) continue;
    const at::Tensor& captured = attribute.tensor;
    const c10::NoGradGuard no_grad;
    const at::Tensor made =
        make ? make(attribute)
             : at::empty_strided(captured.sizes(), captured.strides(), captured.options().device(at::kCPU));
    const std::string what = "split: stage " + std::to_string(stage) + " needs '" + attribute.name + "' as " +
                             graph::describe(captured) + "; the tensor made for it is ";
    if (!made.defined() || made.scalar_type() != captured.scalar_type() || made.sizes() != captured.sizes())
      throw InputError(what + graph::describe(made));
    if (made.is_meta()) throw InputError(what + "on the meta device, without memory");
    auto& tensors = attribute.kind == graph::AttributeKind::Parameter ? state.parameters : state.buffers;
    tensors.emplace(attribute.name, made.detach().requires_grad_(captured.requires_grad()));
  }
  return state;
}

StageState make_stage_state(const Pipe& pipe, int stage, c10::Device device) {
  if (device.is_cpu()) return make_stage_state(pipe, stage);
  return make_stage_state(pipe, stage, [device](const graph::Attribute& attribute) {
    return attribute.tensor.to(device, /*non_blocking=*/false, /*copy=*/true);
  });
}

void bind(graph::Graph& graph, const StageState& state, c10::Device device) {
  bind(graph, state);
  if (!device.is_cpu()) graph::move_to(graph, device);
}

}  // namespace plumbline::split
