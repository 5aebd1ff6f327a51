#include "runtime/backward/split/stage_inputs.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/add.h>

#include <algorithm>
#include <tuple>

#include "runtime/backward/make_node.h"
#include "runtime/backward/requires_gradient.h"

namespace plumbline::backward {

using torch::autograd::Edge;
using torch::autograd::variable_list;

/// Ends the graph at inputs that are no leaves, and keeps the gradients that arrive there.
struct StageInputs::Catcher : torch::autograd::Node {
  /// Adds an input like the one that `edge` leads to.
  int add(const Edge& edge) {
    input_metadata_.emplace_back(edge.function->input_metadata(edge.input_nr));
    return static_cast<int>(input_metadata_.size()) - 1;
  }
  variable_list apply(variable_list&& grads) override {
    caught = std::move(grads);
    return {};
  }
  variable_list caught;
};

StageInputs::StageInputs(std::span<const at::Tensor> inputs) : inputs_(inputs) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!requires_gradient(inputs[i])) continue;
    const Edge edge = torch::autograd::impl::gradient_edge(inputs[i]);
    nodes_.push_back(edge.function);
    places_.push_back({edge.function.get(), edge.input_nr, static_cast<int>(i), -1});
  }
  std::sort(places_.begin(), places_.end());
  const auto same = [](const Place& a, const Place& b) { return a.node == b.node && a.input_nr == b.input_nr; };
  places_.erase(std::unique(places_.begin(), places_.end(), same), places_.end());
  grads_before_.resize(places_.size());
  for (size_t p = 0; p < places_.size(); ++p) {
    const at::Tensor& input = inputs_[places_[p].slot];
    if (input.is_leaf()) {
      grads_before_[p] = std::move(input.mutable_grad());
      input.mutable_grad() = at::Tensor();
      continue;
    }
    if (!catcher_) catcher_ = make_node<Catcher>();
    places_[p].caught = static_cast<Catcher&>(*catcher_).add(torch::autograd::impl::gradient_edge(input));
  }
}

StageInputs::~StageInputs() { put_back(); }

const StageInputs::Place* StageInputs::find(const Edge& edge) const {
  const Place wanted{edge.function.get(), edge.input_nr, -1, -1};
  const auto found = std::lower_bound(places_.begin(), places_.end(), wanted);
  if (found == places_.end() || found->node != wanted.node || found->input_nr != wanted.input_nr) return nullptr;
  return &*found;
}

Edge StageInputs::instead_of(const Edge& edge) const {
  const Place* place = find(edge);
  return place && place->caught >= 0 ? Edge(catcher_, static_cast<uint32_t>(place->caught)) : edge;
}

void StageInputs::take_grads(std::vector<at::Tensor>& grads, bool accumulate) {
  const c10::AutoGradMode no_grad(false);
  grads.assign(inputs_.size(), at::Tensor());
  std::vector<at::Tensor> sums = grads_before_;
  for (size_t p = 0; p < places_.size(); ++p) {
    const Place& place = places_[p];
    at::Tensor& grad = grads[place.slot];
    if (place.caught >= 0) {
      const variable_list& caught = static_cast<Catcher&>(*catcher_).caught;
      if (!caught.empty()) grad = caught[place.caught];  // empty: no gradient reached any of them
      continue;
    }
    grad = inputs_[place.slot].grad();
    const at::Tensor& before = grads_before_[p];
    if (!accumulate || !grad.defined()) continue;
    // Not in place: it may be the result of an earlier backward. A sparse tensor must be the second operand.
    if (before.defined())
      sums[p] = before.is_sparse() ? at::add(grad, before) : at::add(before, grad);
    else
      sums[p] = grad;
  }
  grads_before_ = std::move(sums);
  put_back();
}

void StageInputs::put_back() {
  for (size_t p = 0; p < places_.size(); ++p)
    if (places_[p].caught < 0) inputs_[places_[p].slot].mutable_grad() = std::move(grads_before_[p]);
  places_.clear();
}

}  // namespace plumbline::backward
