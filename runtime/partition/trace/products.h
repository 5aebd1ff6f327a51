// The gradient of a product, as eager mode makes it. Autograd's formula for aten::prod looks at the data: where no
// factor is zero, it divides the product by each, else it multiplies the others. On the functional tensors of a trace
// it takes the second way always, which has other bits. So a trace has the gradient as one call, which looks when it
// runs.
#pragma once

#include "runtime/graph/graph.h"

namespace plumbline::partition {

/// Makes calls of aten::prod into calls of plumbline::prod: the same value, made by aten::prod, with
/// plumbline::prod_backward as its backward.
void use_products_with_own_gradient(graph::Graph& graph);

}  // namespace plumbline::partition
