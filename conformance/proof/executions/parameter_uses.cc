#include "conformance/proof/executions/parameter_uses.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/add.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/functions/accumulate_grad.h>

#include <unordered_set>
#include <utility>

namespace plumbline::proof {

struct ParameterUses::Delivered {
  /// By stage and parameter: the gradients of the uses, in the order of their arrival.
  std::map<int, std::map<size_t, std::vector<at::Tensor>>> by_stage;
};

namespace {

using torch::autograd::Node;
using torch::autograd::variable_list;

/// Notes the gradients that a node delivers at some of its edges.
template <class Note>
class NotingHook : public torch::autograd::FunctionPostHook {
 public:
  explicit NotingHook(Note note) : note_(std::move(note)) {}
  variable_list operator()(const variable_list& gradients, const variable_list&) override {
    note_(gradients);
    return gradients;
  }

 private:
  Note note_;
};

}  // namespace

ParameterUses::ParameterUses(const std::vector<at::Tensor>& roots, const std::vector<at::Tensor>& parameters,
                             const std::function<int(uint64_t)>& stage_of)
    : delivered_(std::make_shared<Delivered>()) {
  std::map<const at::TensorImpl*, size_t> number;
  for (size_t i = 0; i < parameters.size(); ++i) number.emplace(parameters[i].unsafeGetTensorImpl(), i);
  std::vector<Node*> open;
  std::unordered_set<Node*> seen;
  for (const at::Tensor& root : roots)
    if (root.grad_fn()) open.push_back(root.grad_fn().get());
  while (!open.empty()) {
    Node* const node = open.back();
    open.pop_back();
    if (!seen.insert(node).second) continue;
    std::vector<std::pair<size_t, size_t>> edges;  // of this node, and the parameter at its end
    for (size_t i = 0; i < node->next_edges().size(); ++i) {
      Node* const next = node->next_edge(i).function.get();
      if (next == nullptr) continue;
      const auto* leaf = dynamic_cast<torch::autograd::AccumulateGrad*>(next);
      if (leaf == nullptr) {
        open.push_back(next);
        continue;
      }
      const auto parameter = number.find(leaf->variable.unsafeGetTensorImpl());
      if (parameter != number.end()) edges.emplace_back(i, parameter->second);
    }
    if (edges.empty()) continue;
    const int stage = stage_of(node->sequence_nr());
    auto note = [delivered = delivered_, edges, stage](const variable_list& gradients) {
      for (const auto& [edge, parameter] : edges)
        if (gradients.at(edge).defined()) delivered->by_stage[stage][parameter].push_back(gradients[edge].detach());
    };
    node->add_post_hook(std::make_unique<NotingHook<decltype(note)>>(std::move(note)));
  }
}

std::vector<at::Tensor> ParameterUses::all() const {
  std::vector<at::Tensor> gradients;
  for (const auto& [stage, of_stage] : delivered_->by_stage)
    for (const auto& [parameter, uses] : of_stage) gradients.insert(gradients.end(), uses.begin(), uses.end());
  return gradients;
}

ParameterUses ParameterUses::with(std::span<const at::Tensor> gradients) const {
  auto delivered = std::make_shared<Delivered>(*delivered_);
  size_t next = 0;
  for (auto& [stage, of_stage] : delivered->by_stage)
    for (auto& [parameter, uses] : of_stage)
      for (at::Tensor& use : uses) use = gradients[next++];
  return ParameterUses(std::move(delivered));
}

std::map<size_t, at::Tensor> ParameterUses::gradients(int stage) const {
  const c10::NoGradGuard no_grad;
  std::map<size_t, at::Tensor> sums;
  for (const auto& [parameter, uses] : delivered_->by_stage[stage])
    for (const at::Tensor& use : uses) {
      at::Tensor& sum = sums[parameter];
      sum = sum.defined() ? at::add(sum, use) : use;
    }
  return sums;
}

}  // namespace plumbline::proof
