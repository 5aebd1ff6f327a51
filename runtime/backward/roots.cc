#include "runtime/backward/roots.h"

#include <ATen/ops/ones_like.h>

#include "runtime/backward/released_output.h"
#include "runtime/backward/requires_gradient.h"
#include "runtime/error.h"
#include "runtime/graph/error_text.h"
#include "runtime/graph/graph.h"

namespace plumbline::backward {
namespace {

std::string debug_text(const at::Tensor& tensor) {
  return graph::describe(tensor) + (requires_gradient(tensor) ? "*" : "");
}

bool is_sequence(const c10::IValue& value) { return value.isTuple() || value.isList(); }

std::vector<c10::IValue> elements(const c10::IValue& value) {
  if (value.isTuple()) return value.toTupleRef().elements().vec();
  return value.toListRef().vec();
}

void add(Roots& roots, const at::Tensor& tensor, at::Tensor grad) {
  if (!requires_gradient(tensor)) return;
  if (!grad.defined()) {
    if (is_released(tensor))
      throw Error("an output that was released (" + graph::describe(tensor) + ") needs a gradient");
    if (tensor.numel() != 1)
      throw Error("an output is " + graph::describe(tensor) +
                  " and has no gradient; only that of a scalar is 1 by default");
    grad = at::ones_like(tensor, tensor.options().requires_grad(false));
  } else if (grad.sizes() != tensor.sizes()) {
    throw Error("an output is " + graph::describe(tensor) + ", its gradient " + graph::describe(grad) +
                "; they need the same sizes");
  }
  roots.tensors.push_back(tensor);
  roots.edges.push_back(torch::autograd::impl::gradient_edge(tensor));
  roots.grads.push_back(std::move(grad));
}

/// Walks output and gradient together and collects the tensors that take part.
void flatten(const c10::IValue& output, const c10::IValue& grad, Roots& roots) {
  if (output.isTensor()) {
    const at::Tensor& tensor = output.toTensor();
    if (!requires_gradient(tensor)) return;
    if (!grad.isNone() && !grad.isTensor())
      throw Error("expected a tensor or None as gradient of a tensor, got " + grad.tagKind());
    add(roots, tensor, grad.isNone() ? at::Tensor() : grad.toTensor());
  } else if (is_sequence(output)) {
    if (grad.isNone()) return;
    if (!is_sequence(grad)) throw Error("expected a gradient of type " + output.tagKind() + ", got " + grad.tagKind());
    const std::vector<c10::IValue> parts = elements(output), part_grads = elements(grad);
    if (parts.size() != part_grads.size())
      throw Error("expected " + std::to_string(parts.size()) + " gradients for as many outputs, got " +
                  std::to_string(part_grads.size()));
    for (size_t i = 0; i < parts.size(); ++i) flatten(parts[i], part_grads[i], roots);
  } else if (output.isGenericDict()) {
    if (grad.isNone()) return;
    if (!grad.isGenericDict()) throw Error("expected a gradient of type Dict, got " + grad.tagKind());
    const auto parts = output.toGenericDict(), part_grads = grad.toGenericDict();
    if (parts.size() != part_grads.size())
      throw Error("expected gradients under the outputs' " + std::to_string(parts.size()) + " keys, got " +
                  std::to_string(part_grads.size()));
    for (const auto& item : parts) {
      if (!part_grads.contains(item.key())) throw Error("no gradient under the key " + item.key().toStringRef());
      flatten(item.value(), part_grads.at(item.key()), roots);
    }
  }
}

}  // namespace

Roots gather_roots(std::span<const at::Tensor> roots, std::span<const at::Tensor> grads) {
  Roots gathered;
  gathered.tensors.reserve(roots.size());
  gathered.edges.reserve(roots.size());
  gathered.grads.reserve(roots.size());
  for (size_t i = 0; i < roots.size(); ++i) add(gathered, roots[i], grads[i]);
  return gathered;
}

Roots gather_roots(const c10::IValue& output, const c10::IValue& output_grad) {
  Roots gathered;
  flatten(output, output_grad, gathered);
  return gathered;
}

std::vector<at::Tensor> tensors_of(const std::vector<c10::IValue>& values) {
  std::vector<at::Tensor> tensors;
  for (const c10::IValue& value : values) tensors.push_back(value.isTensor() ? value.toTensor() : at::Tensor());
  return tensors;
}

void throw_backward_failure(const char* half, const std::exception& error, const std::string& outputs,
                            const std::string& grads, const std::string& inputs) {
  throw Error("Failed to run " + std::string(half) + ": " + graph::error_text(error) + "; stage output: " + outputs +
              ", output gradient: " + grads + ", input: " + inputs);
}

std::string debug_text(std::span<const at::Tensor> tensors) {
  std::string text = "(";
  for (const at::Tensor& tensor : tensors) text += (text.size() > 1 ? ", " : "") + debug_text(tensor);
  return text + ")";
}

std::string debug_text(const c10::IValue& value) {
  if (value.isTensor()) return debug_text(value.toTensor());
  if (value.isNone()) return "None";
  if (is_sequence(value)) return debug_text(elements(value));
  if (value.isGenericDict()) {
    std::string text = "{";
    for (const auto& item : value.toGenericDict())
      text += (text.size() > 1 ? ", " : "") + item.key().toStringRef() + ": " + debug_text(item.value());
    return text + "}";
  }
  return value.tagKind();
}

std::string debug_text(const std::vector<c10::IValue>& values) {
  std::string text = "(";
  for (const c10::IValue& value : values) text += (text.size() > 1 ? ", " : "") + debug_text(value);
  return text + ")";
}

}  // namespace plumbline::backward
