#include "runtime/partition/joint/effects.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace plumbline {
namespace {

/// Position of `dropout_p` among the arguments of the calls (overload `default`) that have one; where it is not
/// written it is 0.
struct DropoutArgument {
  std::string_view op;
  size_t position;
};
constexpr std::array kDropoutArguments{
    DropoutArgument{"aten::scaled_dot_product_attention", 4},
    DropoutArgument{"aten::_scaled_dot_product_attention_math", 4},
    DropoutArgument{"aten::_scaled_dot_product_attention_math_for_mps", 4},
    DropoutArgument{"aten::_scaled_dot_product_flash_attention", 3},
    DropoutArgument{"aten::_scaled_dot_product_flash_attention_for_cpu", 3},
    DropoutArgument{"aten::_scaled_dot_product_efficient_attention", 5},
    DropoutArgument{"aten::_scaled_dot_product_cudnn_attention", 5},
    DropoutArgument{"aten::_scaled_dot_product_fused_attention_overrideable", 4},
    DropoutArgument{"aten::_triton_scaled_dot_attention", 3},
    DropoutArgument{"aten::_flash_attention_forward", 7},
    DropoutArgument{"aten::_efficient_attention_forward", 8},
    DropoutArgument{"aten::_cudnn_attention_forward", 9},
};

bool is_zero(const JointArgument& argument) {
  if (argument.kind == JointArgument::Kind::Integer) return argument.integer == 0;
  return argument.kind == JointArgument::Kind::Float && argument.real == 0;
}

}  // namespace

bool has_effects(const JointNode& node) { return node.writes || (node.impure && !node.seeded); }

bool is_collective(const JointNode& node) {
  return node.kind == JointKind::Call && node.op.starts_with("_c10d_functional::");
}

bool is_collective_wait(const JointNode& node) {
  return node.op == "_c10d_functional::wait_tensor" || node.op == "_c10d_functional::wait_tensors";
}

bool draws_random_numbers(const JointNode& node) {
  if (node.kind != JointKind::Call || !node.seeded) return false;
  const auto attention =
      std::ranges::find_if(kDropoutArguments, [&](const DropoutArgument& known) { return known.op == node.op; });
  if (attention == kDropoutArguments.end() || node.overload != "default") return true;
  if (attention->position < node.args.size()) return !is_zero(node.args[attention->position]);
  for (const auto& [name, argument] : node.kwargs)
    if (name == "dropout_p") return !is_zero(argument);
  return false;
}

}  // namespace plumbline
