#include "conformance/backend/weight_closures.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/matmul.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace plumbline::conformance {
namespace {

using Tensors = std::vector<at::Tensor>;

struct Queued {
  at::Tensor x, weight, bias, grad;
};
thread_local std::vector<Queued> queue;

void add_to_grad(const at::Tensor& parameter, const at::Tensor& grad) {
  at::Tensor& sum = parameter.mutable_grad();
  sum = sum.defined() ? sum + grad : grad;
}

void add_gradients(const Queued& item) {
  const at::Tensor rows = item.grad.reshape({-1, item.grad.size(-1)});
  if (item.weight.requires_grad()) add_to_grad(item.weight, rows.t().mm(item.x.reshape({-1, item.x.size(-1)})));
  if (item.bias.defined() && item.bias.requires_grad()) add_to_grad(item.bias, rows.sum(0));
}

struct DeferredLinear : torch::autograd::Function<DeferredLinear> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x, const at::Tensor& weight,
                            const std::optional<at::Tensor>& bias) {
    context->save_for_backward({x, weight, bias.value_or(at::Tensor())});
    const at::AutoDispatchBelowADInplaceOrView below;
    return at::linear(x, weight, bias);
  }
  static Tensors backward(torch::autograd::AutogradContext* context, const Tensors& grads) {
    const Tensors saved = context->get_saved_variables();
    queue.push_back({saved[0].detach(), saved[1], saved[2], grads[0].detach()});
    return {context->needs_input_grad(0) ? at::matmul(grads[0], saved[1]) : at::Tensor(), at::Tensor(), at::Tensor()};
  }
};

bool is_parameter(const graph::Graph& graph, graph::ValueId value) {
  return std::ranges::any_of(graph.attributes, [value](const graph::Attribute& attribute) {
    return attribute.kind == graph::AttributeKind::Parameter && attribute.value == value;
  });
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(plumbline, library) {
  library.def("deferred_linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor");
}
TORCH_LIBRARY_IMPL(plumbline, Autograd, library) {
  library.impl("deferred_linear",
               [](const at::Tensor& x, const at::Tensor& weight, const std::optional<at::Tensor>& bias) {
                 return DeferredLinear::apply(x, weight, bias);
               });
}
TORCH_LIBRARY_IMPL(plumbline, CompositeExplicitAutograd, library) {
  library.impl("deferred_linear", [](const at::Tensor& x, const at::Tensor& weight,
                                     const std::optional<at::Tensor>& bias) { return at::linear(x, weight, bias); });
}

void defer_weight_gradients(split::Pipe& pipe) {
  static const c10::OperatorHandle deferred =
      c10::Dispatcher::singleton().findSchemaOrThrow("plumbline::deferred_linear", "");
  for (split::Stage& stage : pipe.stages)
    for (graph::Node& node : stage.graph.nodes)
      if (node.op && node.op->schema().name() == "aten::linear" &&
          is_parameter(stage.graph, node.arguments.at(1).values.at(0)))
        node.op = deferred;
}

engine::WeightWork take_weight_work() {
  if (queue.empty()) return {};
  return [mine = std::exchange(queue, {})] {
    for (const Queued& item : mine) add_gradients(item);
  };
}

}  // namespace plumbline::conformance
