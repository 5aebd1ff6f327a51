#include "runtime/engine/step/loss_leaves.h"

#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/accumulate_grad.h>

#include <algorithm>
#include <tuple>
#include <unordered_set>

#include "runtime/backward/requires_gradient.h"

namespace plumbline::engine {
namespace {

using torch::autograd::Edge;
using torch::autograd::Node;

bool holds(const split::StageState& state, const at::Tensor& leaf) {
  return std::ranges::any_of(state.parameters, [&](const auto& parameter) { return parameter.second.is_same(leaf); });
}

}  // namespace

std::optional<at::Tensor> foreign_leaf(const at::Tensor& loss, const std::vector<at::Tensor>& outputs,
                                       const split::StageState& state) {
  if (!backward::requires_gradient(loss) || loss.is_leaf()) return std::nullopt;
  std::vector<Edge> ends;
  for (const at::Tensor& output : outputs)
    if (backward::requires_gradient(output)) ends.push_back(torch::autograd::impl::gradient_edge(output));
  std::unordered_set<Node*> seen;
  std::vector<Node*> open;
  const auto visit = [&](const Edge& edge) {
    if (edge.is_valid() && std::ranges::find(ends, edge) == ends.end() && seen.insert(edge.function.get()).second)
      open.push_back(edge.function.get());
  };
  visit(torch::autograd::impl::gradient_edge(loss));
  while (!open.empty()) {
    Node* const node = open.back();
    open.pop_back();
    const auto* const leaf = dynamic_cast<const torch::autograd::AccumulateGrad*>(node);
    if (leaf != nullptr && !holds(state, leaf->variable)) return leaf->variable;
    for (const Edge& edge : std::as_const(*node).next_edges()) visit(edge);
  }
  return std::nullopt;
}

}  // namespace plumbline::engine
