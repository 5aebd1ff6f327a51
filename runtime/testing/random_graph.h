// Random graphs that run, with every feature of Graph: numbers, lists with numbers, autocast regions, branches, calls
// without gradients, tied and transient attributes. Built node by node, independently of the text and JSON forms.
#pragma once

#include <ATen/ATen.h>

#include <cmath>
#include <random>

#include "runtime/graph/graph.h"

namespace plumbline::testing {

class RandomGraph {
 public:
  explicit RandomGraph(unsigned seed) : random_(seed) {}

  /// All tensors are f32[3,4]. The attributes are bound; `depth` bounds the nesting of branches.
  graph::Graph make(int depth = 2) {
    graph_ = graph::Graph();
    tensors_ = {}, numbers_ = {};
    at::Tensor weight = tensor(true), other = tensor(false);
    graph_.inputs = {{"x", value(true)}, {"the \"other\"\nx", value(false)}};
    tensors_ = {graph_.inputs[0].value, graph_.inputs[1].value};
    if (depth == 2) {
      attribute({graph::AttributeKind::Parameter,
                 "fc.weight",
                 {"tied.weight", "head \\ weight"},
                 true,
                 weight,
                 graph::kNoValue});
      attribute({graph::AttributeKind::Buffer, "mean", {}, false, other, graph::kNoValue});
      attribute({graph::AttributeKind::Constant, "constant0", {}, true, other + 1, graph::kNoValue});
      graph_.attributes.push_back({graph::AttributeKind::Parameter, "unused", {}, true, tensor(true), graph::kNoValue});
    }
    graph_.autocast = {{}, {c10::kCPU, at::kHalf, false, true, 0}, {c10::kCPU, at::kBFloat16, true, false, -1}};
    for (int i = 0; i < 2; ++i) unary("aten::neg", "", {of(any())});
    const int count = pick(14);
    for (int i = 0; i < count; ++i) step(depth);
    graph_.outputs = {tensors_.back(), graph::kNoValue, any()};
    graph_.module_calls = {{"", "Root", 0, size()}, {"fc", "a::\"Linear\"", 1, 1 + pick(size() - 1)}};
    return graph_;
  }

  at::Tensor tensor(bool requires_grad) {
    std::vector<float> data(12);
    for (float& x : data) x = static_cast<float>(pick(9)) - 4.0f;
    return at::tensor(data).view({3, 4}).set_requires_grad(requires_grad);
  }

 private:
  int pick(int count) { return static_cast<int>(random_() % static_cast<unsigned>(count)); }
  int32_t size() const { return static_cast<int32_t>(graph_.nodes.size()); }
  graph::ValueId any() { return tensors_[pick(static_cast<int>(tensors_.size()))]; }
  graph::ValueId value(bool requires_grad) {
    return graph_.add_value({at::kFloat, {3, 4}, requires_grad, pick(4) - 1});
  }
  graph::ValueId number(graph::ValueKind kind) {
    const at::ScalarType dtype = kind == graph::ValueKind::Int    ? at::kLong
                                 : kind == graph::ValueKind::Bool ? at::kBool
                                                                  : at::kDouble;
    return graph_.add_value({dtype, {}, false, -1, kind});
  }

  void attribute(graph::Attribute attribute) {
    attribute.value = value(attribute.tensor.requires_grad());
    tensors_.push_back(attribute.value);
    graph_.attributes.push_back(std::move(attribute));
  }

  static graph::Argument constant(c10::IValue constant) {
    return {graph::Argument::Kind::Constant, std::move(constant), {}};
  }
  static graph::Argument of(graph::ValueId v) { return {graph::Argument::Kind::Value, {}, {v}}; }

  graph::Node& node(const char* name, const char* overload, std::vector<graph::Argument> arguments,
                    std::vector<graph::Result> results) {
    graph::Node node;
    node.op = c10::Dispatcher::singleton().findSchemaOrThrow(name, overload);
    node.arguments = std::move(arguments);
    node.results = std::move(results);
    node.grad_enabled = pick(4) != 0;
    node.autocast = pick(4) - 1;
    graph_.nodes.push_back(std::move(node));
    return graph_.nodes.back();
  }
  void unary(const char* name, const char* overload, std::vector<graph::Argument> arguments) {
    const graph::ValueId result = value(pick(2) == 0);
    node(name, overload, std::move(arguments), {{false, {result}}});
    tensors_.push_back(result);
  }

  void step(int depth) {
    switch (pick(12)) {
      case 0:
        return unary("aten::add", "Tensor", {of(any()), of(any()), constant(int64_t{2})});
      case 1:
        return unary("aten::mul", "Scalar", {of(any()), constant(std::ldexp(1.0 + pick(7), -pick(60)))});
      case 2:
        return unary("aten::clamp", "", {of(any()), constant({}), constant(pick(2) ? 0.1 : INFINITY)});
      case 3:
        return unary("aten::softmax", "int", {of(any()), constant(int64_t{-1}), constant({})});
      case 4:
        return unary("aten::to", "device",
                     {of(any()), constant(c10::Device("cpu")), constant(static_cast<int64_t>(at::kFloat)),
                      constant(false), constant(pick(2) == 0), constant({})});
      case 5:
        return unary("aten::gelu", "", {of(any()), constant(pick(2) ? "tanh" : "none")});
      case 6: {
        const graph::ValueId size = number(graph::ValueKind::Int);
        node("aten::sym_size", "int", {of(any()), constant(int64_t{0})}, {{false, {size}}});
        numbers_.push_back(size);
        return;
      }
      case 7: {
        if (numbers_.empty()) return;
        const c10::List<int64_t> sizes({0, 4});
        return unary("aten::reshape", "",
                     {of(any()), {graph::Argument::Kind::NumberList, sizes, {numbers_.back(), graph::kNoValue}}});
      }
      case 8: {
        const graph::ValueId first = value(false), second = value(true);
        graph_.values[first].sizes = {3, 2};
        graph_.values[second].sizes = {3, 2};
        node("aten::split", "Tensor", {of(any()), constant(int64_t{2}), constant(int64_t{1})},
             {{true, {first, second}}});
        return unary("aten::cat", "", {{graph::Argument::Kind::TensorList, {}, {second, first}}, constant(int64_t{1})});
      }
      case 9: {
        const graph::ValueId index = graph_.add_value({at::kLong, {3, 4}, false, -1});
        node("aten::argsort", "", {of(any()), constant(int64_t{0}), constant(false)}, {{false, {index}}});
        return unary("aten::take_along_dim", "", {of(any()), of(index), constant(int64_t{0})});
      }
      case 10:
        graph_.nodes.emplace_back();
        return;
      default:
        if (depth > 0) cond(depth);
    }
  }

  void cond(int depth) {
    const graph::ValueId sum = graph_.add_value({at::kFloat, {}, false, -1}),
                         positive = graph_.add_value({at::kBool, {}});
    node("aten::sum", "", {of(any()), constant({})}, {{false, {sum}}});
    node("aten::gt", "Scalar", {of(sum), constant(0.5)}, {{false, {positive}}});
    const graph::ValueId result = value(false), second = value(false);
    graph::Node& call =
        node("plumbline::cond", "", {of(positive), {graph::Argument::Kind::TensorList, {}, {any(), any()}}},
             {{true, {result, graph::kNoValue, second}}});
    for (int i = 0; i < 2; ++i)
      call.branches.push_back(std::make_shared<const graph::Graph>(RandomGraph(random_()).make(depth - 1)));
    tensors_.push_back(result);
    tensors_.push_back(second);
  }

  std::mt19937 random_;
  graph::Graph graph_;
  std::vector<graph::ValueId> tensors_, numbers_;
};

}  // namespace plumbline::testing
