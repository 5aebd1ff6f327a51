#include "runtime/partition/joint/effects.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace plumbline::partition {
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

std::vector<HalfMarks> marks_of(const JointGraph& graph) {
  std::vector<HalfMarks> marks;
  marks.reserve(graph.nodes.size());
  for (const JointNode& node : graph.nodes) marks.push_back(half_marks(node));
  return marks;
}

std::vector<char> ran_in_backward(const JointGraph& graph, const JointEdges& edges,
                                  const std::vector<HalfMarks>& marks) {
  const size_t n = marks.size();
  size_t forward_end = n;
  for (size_t i = 0; i < n; ++i)
    if (marks[i].forward_call) forward_end = i;
  for (const NodeIndex output : graph.forward_outputs())
    if (output != kNoNode && !marks[output].in_backward)
      forward_end = std::max(forward_end, static_cast<size_t>(output));
  std::vector<char> late(n, 0);
  for (size_t i = 0; i < n; ++i)
    late[i] = marks[i].getitem ? late[edges.inputs(static_cast<NodeIndex>(i)).front()]
                               : marks[i].in_backward || (marks[i].unmarked && i > forward_end);
  return late;
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

bool traced_in_backward(const JointNode& node) {
  return node.mark == JointMark::IsBackward || node.mark == JointMark::MustBeInBackward;
}

std::vector<char> ran_in_backward(const JointGraph& graph, const JointEdges& edges) {
  return ran_in_backward(graph, edges, marks_of(graph));
}

HalfMarks half_marks(const JointNode& node) {
  const bool call = node.kind == JointKind::Call;
  return {.forward_call = call && node.mark == JointMark::IsForward,
          .in_backward = traced_in_backward(node),
          .unmarked = node.mark == JointMark::None,
          .getitem = node.kind == JointKind::GetItem,
          .needs_backward = node.kind == JointKind::Tangent || node.kind == JointKind::BackwardSeed ||
                            node.mark == JointMark::MustBeInBackward,
          .may_not_be_dropped = call && (node.writes || node.impure || node.seeded)};
}

MustRun calls_that_must_run(const JointGraph& graph, const JointEdges& edges) {
  return calls_that_must_run(graph, edges, marks_of(graph));
}

MustRun calls_that_must_run(const JointGraph& graph, const JointEdges& edges, const std::vector<HalfMarks>& marks) {
  const size_t n = marks.size();
  MustRun must{std::vector<char>(n, 0), std::vector<char>(n, 0)};
  const std::vector<char> late = ran_in_backward(graph, edges, marks);
  std::vector<char> of_backward(n, 0);  // the forward cannot have it
  for (size_t i = 0; i < n; ++i) {
    of_backward[i] = marks[i].needs_backward;
    for (const NodeIndex input : edges.inputs(static_cast<NodeIndex>(i))) of_backward[i] |= of_backward[input];
    if (!marks[i].may_not_be_dropped || !(has_effects(graph.nodes[i]) || draws_random_numbers(graph.nodes[i])))
      continue;
    of_backward[i] |= late[i];
    (of_backward[i] ? must.in_backward : must.in_forward)[i] = 1;
  }
  return must;
}

}  // namespace plumbline::partition
