#include "runtime/graph/device.h"

#include <ATen/core/grad_mode.h>

#include <memory>

#include "runtime/error.h"

namespace plumbline::graph {
namespace {

bool is_device(const c10::Argument& parameter) {
  return parameter.name() == "device" &&
         (parameter.type()->kind() == c10::TypeKind::DeviceObjType ||
          (parameter.type()->kind() == c10::TypeKind::OptionalType &&
           parameter.type()->castRaw<c10::OptionalType>()->getElementType()->kind() == c10::TypeKind::DeviceObjType));
}

bool is_tensor(const c10::IValue& constant) { return constant.isTensor() && constant.toTensor().defined(); }

void move_call(const Graph& graph, Node& node, c10::Device device) {
  const c10::FunctionSchema& schema = node.op->schema();
  if (schema.name() == "plumbline::get_random_state" || schema.name() == "plumbline::set_random_state")
    throw InputError("device: the model's random state travels with its micro-batches (" + schema.name() +
                     "), which is implemented for the CPU's generator only");
  bool follows = false;
  for_each_use(node, [&](ValueId v) { follows = follows || graph.values[v].kind == ValueKind::Tensor; });
  for (size_t i = 0; i < node.arguments.size(); ++i) {
    Argument& argument = node.arguments[i];
    if (argument.kind != Argument::Kind::Constant) continue;
    if (is_tensor(argument.constant)) argument.constant = argument.constant.toTensor().to(device);
    if (i >= schema.arguments().size() || !is_device(schema.arguments()[i])) continue;
    if (argument.constant.isNone() ? !follows
                                   : argument.constant.toDevice().is_cpu() || argument.constant.toDevice().is_meta())
      argument.constant = device;
  }
}

}  // namespace

void move_to(Graph& graph, c10::Device device) {
  const c10::NoGradGuard no_grad;
  for (Attribute& attribute : graph.attributes)
    if (attribute.kind == AttributeKind::Constant && attribute.tensor.defined())
      attribute.tensor = attribute.tensor.to(device);
  for (AutocastRegion& region : graph.autocast) region.device = device.type();
  for (Node& node : graph.nodes) {
    if (!node.is_split()) move_call(graph, node, device);
    for (auto& branch : node.branches) {
      auto moved = std::make_shared<Graph>(*branch);
      move_to(*moved, device);
      branch = std::move(moved);
    }
  }
}

std::vector<at::Tensor> on_host(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> host = tensors;
  for (at::Tensor& tensor : host)
    if (tensor.defined() && !tensor.is_cpu()) tensor = tensor.detach().cpu().requires_grad_(tensor.requires_grad());
  return host;
}

}  // namespace plumbline::graph
