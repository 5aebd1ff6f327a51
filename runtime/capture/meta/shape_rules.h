// Shape rules: the results of an operator on the meta device, where LibTorch cannot infer them.
//
// A meta tensor has sizes, strides and a type, but no memory; most operators can infer the shapes of their results on
// it. Some cannot in a process without Python (embedding's index_select, convolution, the norms, where), nor can an
// operator of the user's own. A rule in this table replaces them during a capture on the meta device.
//
// A rule runs in place of the operator's own kernel, below autograd: its results get their gradients, aliases and
// versions from autograd's formula of the operator, as on a real device. The rule of a composite operator
// (scaled_dot_product_attention) replaces the composition, above autograd, when the model itself calls it. Such a rule
// may call differentiable operators; floating results without history that it makes with at::empty() get one when an
// argument requires a gradient.
#pragma once

#include <ATen/core/ivalue.h>

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace plumbline::capture {

/// Takes the arguments of the operator's schema, their tensors all on the meta device; returns one result for each
/// return of the schema. It may call any operator that runs on meta, also through other rules, but not its own.
using ShapeRule = std::function<std::vector<c10::IValue>(std::span<const c10::IValue> arguments)>;

/// Registers `rule` for `op` ("aten::where.self": namespace, name, and the overload if it has one). It takes precedence
/// over LibTorch's own meta kernel and over an earlier rule. Thread safe. Throws InputError for a name without a
/// namespace, and for an empty rule.
void add_shape_rule(const std::string& op, ShapeRule rule);

/// The rule of `op`, or null.
std::shared_ptr<const ShapeRule> find_shape_rule(const std::string& op);

/// The operators with a rule, in the order of their names.
std::vector<std::string> shape_rule_names();

namespace detail {

struct NamedShapeRule {
  const char* op;
  ShapeRule rule;
};

/// The initial rules of the table.
std::vector<NamedShapeRule> builtin_shape_rules();

}  // namespace detail
}  // namespace plumbline::capture
