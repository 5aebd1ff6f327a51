// Models whose outputs are a dict: one nested, with a key whose value is None and with the loss's key in the middle;
// one that computes its loss itself and returns it with the loss's input; two with several heads, whose outputs are
// compared each with a target of its own; the second has a tuple of outputs and a list of targets.

#include <ATen/ops/add.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/sum.h>

#include <algorithm>
#include <iterator>

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

/// The heads of the last three parts, in the order of the dict of outputs.
Tensors heads(Parts& net, const Tensors& in) {
  const at::Tensor trunk = net.chain(0, 4, in[0]);
  const at::Tensor first = net.chain(5, 5, trunk), second = net.chain(6, 6, trunk);
  return {net.chain(7, 7, trunk), first, second};
}

Tensors two_heads(Parts& net, const Tensors& in) {
  const at::Tensor trunk = net.chain(0, 5, in[0]);
  const at::Tensor first = net.chain(6, 6, trunk);
  return {net.chain(7, 7, trunk), first};
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
  // The targets are in another order than the outputs: an engine has to join them by their keys.
  std::vector<Family> with_heads =
      twins({.name = "heads",
             .forward = heads,
             .outputs = dict({"boxes", "scores"}, {value(0), list({value(1), value(2)})}),
             .compared_outputs = 3,
             .targets = dict({"scores", "boxes"}, {list({value(1), value(2)}), value(0)})});
  std::ranges::move(with_heads, std::back_inserter(all));
  all.push_back(exact_twin(
      {.name = "two-heads", .forward = two_heads, .compared_outputs = 2, .targets = list({value(1), value(0)})}));
  return all;
}

}  // namespace plumbline::models
