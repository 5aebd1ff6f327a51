// Shape rules: what an operator returns on the meta device, where LibTorch does not say it.
//
// A meta tensor has sizes, strides and a type, and no memory; most operators compute on it what their results look
// like. Some do not, in a process without Python (embedding's index_select, convolution, the norms, where), nor does an
// operator of the user's own. A rule in this table stands in for them while a capture runs on the meta device.
//
// A rule runs where the operator's own kernel would, below autograd: its results get their gradients, their aliases and
// their versions from autograd's formula of the operator, as on a real device. The rule of an operator that is a
// composition of others (scaled_dot_product_attention) stands for the composition, above autograd, where it is called
// by the model itself: it may call differentiable operators; floating results without history that it makes with
// at::empty() are given one when an argument requires a gradient.
#pragma once

#include <ATen/core/ivalue.h>

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace plumbline::capture {

/// Takes the arguments, one for each of the operator's schema, their tensors all on the meta device; gives the results,
/// one for each return. It may call any operator that runs on meta, also through other rules, but not its own.
using ShapeRule = std::function<std::vector<c10::IValue>(std::span<const c10::IValue> arguments)>;

/// Lets `rule` stand for `op` ("aten::where.self": namespace, name, and the overload if it has one) from now on, before
/// LibTorch's own meta kernel and in place of an earlier rule. May be called from any thread.
/// Throws InputError for a name without a namespace, and for an empty rule.
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

/// The rules that the table begins with.
std::vector<NamedShapeRule> builtin_shape_rules();

}  // namespace detail
}  // namespace plumbline::capture
