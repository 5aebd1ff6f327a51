// Shape rules: the results of an operator on the meta device, where LibTorch cannot infer them.
//
// A meta tensor has sizes, strides and a type, but no memory; most operators can infer the shapes of their results from
// meta arguments. Some cannot in a process without Python (embedding's index_select, convolution, the norms, where),
// nor can a user's operator without a meta kernel. A rule in this table replaces such an operator on the meta device.
//
// A rule runs in place of the operator's kernel, below autograd: autograd's formula of the operator gives the results
// their gradients, aliases and versions, as on a real device. During a capture, the rule of a composite operator
// (scaled_dot_product_attention) replaces the composition, above autograd, if the model itself calls the operator. Such
// a rule may call differentiable operators; if an argument requires a gradient, its floating-point and complex results
// without a history get one.
#pragma once

#include <ATen/core/ivalue.h>

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace plumbline::capture {

/// Takes the arguments of the operator's schema, with all tensors on the meta device, and returns one result for each
/// return of the schema; for a return that the operator writes in place, the argument itself. A violation throws
/// InputError when the rule runs. A rule may call any operator that runs on meta, also through other rules, but not its
/// own operator.
using ShapeRule = std::function<std::vector<c10::IValue>(std::span<const c10::IValue> arguments)>;

/// Registers `rule` for `op` ("aten::where.self": namespace, name, and the overload if it has one). The rule takes
/// precedence over LibTorch's meta kernel and replaces an earlier rule. Thread-safe. Throws InputError if `op` has no
/// namespace or no name, or if `rule` is empty. Whether the operator exists is not checked.
void add_shape_rule(const std::string& op, ShapeRule rule);

/// Returns the rule of `op`, or null. Thread-safe.
std::shared_ptr<const ShapeRule> find_shape_rule(const std::string& op);

namespace detail {

struct NamedShapeRule {
  const char* op;
  ShapeRule rule;
};

/// The initial rules of the table.
std::vector<NamedShapeRule> builtin_shape_rules();

}  // namespace detail
}  // namespace plumbline::capture
