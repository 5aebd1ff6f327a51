#include "runtime/partition/trace/products.h"

#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

namespace plumbline::partition {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// `grad` times the product of all other factors along `dim`: those before and those after.
Tensor times_the_others(const Tensor& grad, const Tensor& factors, int64_t dim) {
  if (factors.numel() == 0) return at::zeros_like(factors);
  const int64_t others = factors.size(dim) - 1;
  if (others == 0) return grad;
  std::vector<int64_t> one = factors.sizes().vec();
  one[dim] = 1;
  const Tensor ones = at::ones(one, grad.options());
  const Tensor before = at::cat({ones, factors.narrow(dim, 0, others)}, dim).cumprod(dim);
  const Tensor after = at::cat({ones, factors.narrow(dim, 1, others).flip(dim)}, dim).cumprod(dim).flip(dim);
  return grad * (before * after).conj();
}

int64_t zeros_among(const Tensor& factors) { return (factors == 0).sum().item<int64_t>(); }

Tensor gradient_of_all(const Tensor& grad, const Tensor& factors, const Tensor& product) {
  if (factors.dim() == 0) return grad;
  const int64_t zeros = zeros_among(factors);
  if (zeros == 0) return grad * (product / factors).conj();
  if (zeros > 1) return at::zeros_like(factors);
  return times_the_others(grad, factors.contiguous().view(-1), 0).view_as(factors);
}

Tensor gradient_along(Tensor grad, const Tensor& factors, Tensor product, int64_t dim, bool keepdim) {
  if (factors.dim() == 0) return grad;
  dim = dim < 0 ? dim + factors.dim() : dim;
  if (!keepdim) {
    grad = grad.unsqueeze(dim);
    product = product.unsqueeze(dim);
  }
  if (zeros_among(factors) == 0) return grad * (product / factors).conj();
  return times_the_others(grad, factors, dim);
}

/// A result of its own, which a call of a graph must give.
Tensor prod_backward(const Tensor& grad, const Tensor& factors, const Tensor& product, std::optional<int64_t> dim,
                     bool keepdim) {
  const Tensor made =
      dim ? gradient_along(grad, factors, product, *dim, keepdim) : gradient_of_all(grad, factors, product);
  return made.is_alias_of(grad) ? made.clone() : made;
}

struct Product : torch::autograd::Function<Product> {
  static Tensor forward(AutogradContext* context, const Tensor& factors, std::optional<int64_t> dim, bool keepdim,
                        std::optional<at::ScalarType> dtype) {
    const Tensor product = dim ? at::prod(factors, *dim, keepdim, dtype) : at::prod(factors, dtype);
    context->save_for_backward({factors, product});
    context->saved_data["dim"] = dim;
    context->saved_data["keepdim"] = keepdim;
    return product;
  }

  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    static const auto op =
        c10::Dispatcher::singleton().findSchemaOrThrow("plumbline::prod_backward", "").typed<decltype(prod_backward)>();
    const variable_list saved = context->get_saved_variables();
    return {op.call(grads[0], saved[0].to(grads[0].scalar_type()), saved[1],
                    context->saved_data["dim"].toOptional<int64_t>(), context->saved_data["keepdim"].toBool()),
            {},
            {},
            {}};
  }
};

Tensor prod(const Tensor& factors, std::optional<at::ScalarType> dtype) {
  return Product::apply(factors, std::optional<int64_t>(), false, dtype);
}

Tensor prod_dim(const Tensor& factors, int64_t dim, bool keepdim, std::optional<at::ScalarType> dtype) {
  return Product::apply(factors, std::optional<int64_t>(dim), keepdim, dtype);
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(plumbline, library) {
  library.def("prod(Tensor self, *, ScalarType? dtype=None) -> Tensor");
  library.def("prod.dim_int(Tensor self, int dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor");
  library.def("prod_backward(Tensor grad, Tensor self, Tensor result, int? dim, bool keepdim) -> Tensor");
}

TORCH_LIBRARY_IMPL(plumbline, Autograd, library) {
  library.impl("prod", &prod);
  library.impl("prod.dim_int", &prod_dim);
}

TORCH_LIBRARY_IMPL(plumbline, CompositeExplicitAutograd, library) { library.impl("prod_backward", &prod_backward); }

void use_products_with_own_gradient(graph::Graph& graph) {
  for (graph::Node& node : graph.nodes) {
    if (node.is_split() || node.op->schema().name() != "aten::prod") continue;
    if (const auto own =
            c10::Dispatcher::singleton().findSchema({"plumbline::prod", node.op->schema().overload_name()}))
      node.op = *own;
  }
}

}  // namespace plumbline::partition
