// Inputs whose rows are each along a different dimension, with a target whose rows are dimension 0; and the reverse.

#include <ATen/ops/add.h>
#include <ATen/ops/mul.h>

#include "reference/models/parts/parts.h"

namespace plumbline::models {
namespace dimension_models {
namespace {

using Tensors = std::vector<at::Tensor>;

/// Inputs: [width, rows]; halfway [2, width / 2, rows]; near the end [rows, width], scaled by an undivided input.
Tensors dimensions(Parts& net, const Tensors& in) {
  at::Tensor h = net.chain(0, 3, in[0].t());
  h = net.chain(4, 5, at::add(h, in[1].permute({2, 0, 1}).reshape({-1, net.width})));
  return {net.chain(6, 7, at::add(h, at::mul(in[2], in[3])))};
}

/// Input [rows, width]; output [width, rows], like the target.
Tensors columns(Parts& net, const Tensors& in) { return {net.chain(0, 7, in[0]).t()}; }

}  // namespace

}  // namespace dimension_models

std::vector<Family> dimension_families() {
  using namespace dimension_models;
  using enum Content;
  std::vector<Family> all = twins({.name = "dimensions",
                                   .forward = dimensions,
                                   .inputs = {{"x", Columns}, {"halves", Halves}, {"late", Values}, {"scale", Scale}}});
  all.push_back(exact_twin({.name = "columns", .forward = columns, .target_in_columns = true}));
  return all;
}

}  // namespace plumbline::models
