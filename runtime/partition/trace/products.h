// The gradient of a product, with the bits of eager mode. Autograd's formula for aten::prod depends on the data: if no
// factor is zero, it divides the product by each factor, otherwise it multiplies the other factors. On the functional
// tensors of a trace it always multiplies, which rounds differently. A trace therefore records the gradient as one
// call, which tests the data when it runs.
#pragma once

#include "runtime/graph/graph.h"

namespace plumbline::partition {

/// Replaces each call of aten::prod by plumbline::prod, which computes the same value with aten::prod and has
/// plumbline::prod_backward as its backward.
void use_products_with_own_gradient(graph::Graph& graph);

}  // namespace plumbline::partition
