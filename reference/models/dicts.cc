// Models whose outputs are a dict: one nested, with a key whose value is None and with the loss's key in the middle;
// one that computes its loss itself and returns it with the loss's input.

#include <ATen/ops/add.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/sum.h>

#include "reference/models/parts/parts.h"

namespace plumbline::models {
namespace dict_models {
namespace {

using Tensors = std::vector<at::Tensor>;

graph::OutputTree value(int output) { return {graph::OutputTree::Kind::Value, output, "", {}, {}}; }

graph::OutputTree dict(std::vector<std::string> keys, std::vector<graph::OutputTree> items) {
  return {graph::OutputTree::Kind::Dict, -1, "", std::move(items), std::move(keys)};
}

graph::OutputTree list(std::vector<graph::OutputTree> items) {
  return {graph::OutputTree::Kind::List, -1, "", std::move(items), {}};
}

/// Only "logits" contributes to the loss.
Tensors nested(Parts& net, const Tensors& in) {
  const at::Tensor early = net.chain(0, 1, in[0]);
  const at::Tensor middle = net.chain(2, 4, early);
  const at::Tensor late = net.chain(5, 6, middle);
  return {net.chain(7, 7, late), early, at::Tensor(), middle, at::sum(late, 1)};
}

/// The target is negated, so that no operation subtracts.
Tensors with_loss(Parts& net, const Tensors& in) {
  const at::Tensor h = net.chain(0, 7, in[0]);
  const at::Tensor error = at::add(h, in[1]);
  return {at::sum(at::mul(error, error)), h};
}

}  // namespace

}  // namespace dict_models

std::vector<Family> dict_families() {
  using namespace dict_models;
  using enum Content;
  std::vector<Family> all =
      twins({.name = "dict",
             .forward = nested,
             .outputs = dict({"hidden", "logits", "absent", "states"},
                             {value(1), value(0), value(2), dict({"sums", "layers"}, {value(4), list({value(3)})})})});
  all.push_back(exact_twin({.name = "dict-loss",
                            .forward = with_loss,
                            .inputs = {{"x", Values}, {"minus_target", Target}},
                            .has_target = false,
                            .outputs = dict({"logits", "loss"}, {value(1), value(0)})}));
  return all;
}

}  // namespace plumbline::models
