#include "runtime/backward/stage_backward.h"

#include <torch/csrc/autograd/autograd.h>

#include "runtime/error.h"
#include "runtime/graph/error_text.h"
#include "runtime/graph/graph.h"

namespace plumbline {
namespace {

std::string debug_text(const at::Tensor& tensor) {
  return describe(tensor) + (tensor.defined() && tensor.requires_grad() ? "*" : "");
}

std::string debug_text(std::span<const at::Tensor> tensors) {
  std::string text = "(";
  for (const at::Tensor& tensor : tensors) text += (text.size() > 1 ? ", " : "") + debug_text(tensor);
  return text + ")";
}

bool is_sequence(const c10::IValue& value) { return value.isTuple() || value.isList(); }

std::vector<c10::IValue> elements(const c10::IValue& value) {
  if (value.isTuple()) return value.toTupleRef().elements().vec();
  return value.toListRef().vec();
}

std::string debug_text(const c10::IValue& value) {
  if (value.isTensor()) return debug_text(value.toTensor());
  if (value.isNone()) return "None";
  if (is_sequence(value)) {
    std::string text = "(";
    for (const c10::IValue& element : elements(value)) text += (text.size() > 1 ? ", " : "") + debug_text(element);
    return text + ")";
  }
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

std::string failure(const std::string& outputs, const std::string& grads, const std::string& inputs,
                    const std::exception& error) {
  return "Failed to run stage backward: " + error_text(error) + "\n  Stage output: " + outputs +
         "\n  Output gradient: " + grads + "\n  Input: " + inputs;
}

/// Autograd without the debug message. Roots are already those that require a gradient.
void run(std::vector<at::Tensor>&& roots, std::vector<at::Tensor>&& grads, std::span<const at::Tensor> inputs,
         std::vector<at::Tensor>& input_grads) {
  if (roots.empty()) throw Error("no output requires a gradient");
  for (size_t i = 0; i < roots.size(); ++i)
    if (grads[i].defined() && grads[i].sizes() != roots[i].sizes())
      throw Error("an output is " + describe(roots[i]) + ", its gradient " + describe(grads[i]));
  torch::autograd::backward(roots, grads);
  input_grads.resize(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    input_grads[i] = at::Tensor();
    if (!inputs[i].defined() || !inputs[i].is_leaf()) continue;
    input_grads[i] = std::move(inputs[i].mutable_grad());
    inputs[i].mutable_grad() = at::Tensor();
  }
}

/// Walks output and gradient together and collects the tensors that take part.
void flatten(const c10::IValue& output, const c10::IValue& grad, std::vector<at::Tensor>& roots,
             std::vector<at::Tensor>& grads) {
  if (output.isTensor()) {
    const at::Tensor& tensor = output.toTensor();
    if (!tensor.defined() || !tensor.requires_grad()) return;
    if (!grad.isNone() && !grad.isTensor())
      throw Error("expected a tensor or None as gradient of a tensor, got " + grad.tagKind());
    roots.push_back(tensor);
    grads.push_back(grad.isNone() ? at::Tensor() : grad.toTensor());
  } else if (is_sequence(output)) {
    if (grad.isNone()) return;
    if (!is_sequence(grad)) throw Error("expected a gradient of type " + output.tagKind() + ", got " + grad.tagKind());
    const std::vector<c10::IValue> parts = elements(output), part_grads = elements(grad);
    if (parts.size() != part_grads.size())
      throw Error("expected " + std::to_string(parts.size()) + " gradients for as many outputs, got " +
                  std::to_string(part_grads.size()));
    for (size_t i = 0; i < parts.size(); ++i) flatten(parts[i], part_grads[i], roots, grads);
  } else if (output.isGenericDict()) {
    if (grad.isNone()) return;
    if (!grad.isGenericDict()) throw Error("expected a gradient of type Dict, got " + grad.tagKind());
    const auto parts = output.toGenericDict(), part_grads = grad.toGenericDict();
    if (parts.size() != part_grads.size())
      throw Error("expected gradients under the outputs' " + std::to_string(parts.size()) + " keys, got " +
                  std::to_string(part_grads.size()));
    for (const auto& item : parts) {
      if (!part_grads.contains(item.key())) throw Error("no gradient under the key " + item.key().toStringRef());
      flatten(item.value(), part_grads.at(item.key()), roots, grads);
    }
  }
}

}  // namespace

void stage_backward(std::span<const at::Tensor> roots, std::span<const at::Tensor> root_grads,
                    std::span<const at::Tensor> inputs, std::vector<at::Tensor>& input_grads) {
  PLUMBLINE_CHECK(roots.size() == root_grads.size(),
                  std::to_string(roots.size()) + " roots, " + std::to_string(root_grads.size()) + " gradients");
  try {
    std::vector<at::Tensor> kept, grads;
    kept.reserve(roots.size());
    grads.reserve(roots.size());
    for (size_t i = 0; i < roots.size(); ++i) {
      if (!roots[i].defined() || !roots[i].requires_grad()) continue;
      kept.push_back(roots[i]);
      grads.push_back(root_grads[i]);
    }
    run(std::move(kept), std::move(grads), inputs, input_grads);
  } catch (const std::exception& error) {
    throw Error(failure(debug_text(roots), debug_text(root_grads), debug_text(inputs), error));
  }
}

std::vector<at::Tensor> stage_backward(const c10::IValue& output, const c10::IValue& output_grad,
                                       const std::vector<c10::IValue>& inputs) {
  std::vector<at::Tensor> input_tensors, input_grads;
  for (const c10::IValue& input : inputs) input_tensors.push_back(input.isTensor() ? input.toTensor() : at::Tensor());
  try {
    std::vector<at::Tensor> roots, grads;
    flatten(output, output_grad, roots, grads);
    run(std::move(roots), std::move(grads), input_tensors, input_grads);
  } catch (const std::exception& error) {
    throw Error(failure(debug_text(output), debug_text(output_grad), debug_text(inputs), error));
  }
  return input_grads;
}

}  // namespace plumbline
