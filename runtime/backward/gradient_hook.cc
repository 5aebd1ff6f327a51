#include "runtime/backward/gradient_hook.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/alias.h>
#include <ATen/ops/clamp.h>
#include <ATen/ops/mul.h>
#include <torch/library.h>

namespace plumbline::backward {
namespace {

at::Tensor with_hook(const at::Tensor& x, double factor, double limit) {
  at::Tensor alias = at::alias(x);
  if (alias.requires_grad())
    alias.register_hook([factor, limit](const at::Tensor& grad) {
      const at::Tensor scaled = at::mul(grad, factor);
      return limit < std::numeric_limits<double>::infinity() ? at::clamp(scaled, -limit, limit) : scaled;
    });
  return alias;
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(plumbline, library) {
  library.def("gradient_hook(Tensor(a) self, float factor, float limit) -> Tensor(a)", &with_hook);
}

at::Tensor gradient_hook(const at::Tensor& x, double factor, double limit) {
  static const auto op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow("plumbline::gradient_hook", "")
                             .typed<at::Tensor(const at::Tensor&, double, double)>();
  return op.call(x, factor, limit);
}

}  // namespace plumbline::backward
