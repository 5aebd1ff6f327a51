// Parameters that get no gradient, zeros, or a gradient of another dtype: frozen parameters, unused ones, ones whose
// use is multiplied by zero, and halves of a model in different precisions.

#include <ATen/autocast_mode.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/add.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/rand_like.h>

#include <limits>

#include "reference/models/parts/parts.h"
#include "runtime/backward/gradient_hook.h"

namespace plumbline::models {
namespace gradient_models {
namespace {

using Tensors = std::vector<at::Tensor>;

/// "aside" is called and its result dropped, "aside_uncalled" is not called: no gradient. The output of "zeroed" is
/// multiplied by zero: its gradient is zero.
Tensors unused(Parts& net, const Tensors& in) {
  at::Tensor h = net.chain(0, 3, in[0]);
  capture::call(net.extra("aside"), h);
  h = at::add(h, at::mul(capture::call(net.extra("zeroed"), h), 0));
  return {net.chain(4, 7, h)};
}

void require_gradients(Part& part, bool required) {
  for (const at::Tensor& parameter : part.parameters()) parameter.set_requires_grad(required);
}

auto frozen(int first, int last) {
  return [first, last](Parts& net, reference::Dtype) {
    for (int i = first; i <= last; ++i) require_gradients(*net.part(i), false);
  };
}

/// Only the biases are trained.
void freeze_weights(Parts& net, reference::Dtype) {
  for (int i = 0; i < kParts; ++i) net.part(i)->fc().weight().set_requires_grad(false);
}

/// Each part casts its input to the dtype of its weight.
Tensors by_own_dtype(Parts& net, const Tensors& in) {
  at::Tensor h = in[0];
  for (int i = 0; i < kParts; ++i) h = capture::call(net.part(i), h.to(net.part(i)->fc().weight().scalar_type()));
  return {h.to(in[0].scalar_type())};
}

/// Parts 3 to 5 in `dtype`; the others, like inputs and targets, in the case's dtype; all in float64 if that is the
/// case's.
auto inner_dtype(at::ScalarType dtype) {
  return [dtype](Parts& net, reference::Dtype outer) {
    if (outer == reference::Dtype::F64) return;
    const c10::NoGradGuard no_grad;
    for (int i = 3; i <= 5; ++i)
      for (at::Tensor& parameter : net.part(i)->parameters()) parameter.set_data(parameter.to(dtype));
  };
}

/// Parts 0 to 2, 6 and 7 in float32 if the case's dtype has fewer bits; the case's bounds are those of its own dtype.
void widen_ends(Parts& net, reference::Dtype outer) {
  if (!is_narrow(outer)) return;
  const c10::NoGradGuard no_grad;
  for (const int i : {0, 1, 2, 6, 7})
    for (at::Tensor& parameter : net.part(i)->parameters()) parameter.set_data(parameter.to(at::kFloat));
}

/// A region of torch.autocast on the CPU, without a cache.
class Autocast {
 public:
  explicit Autocast(at::ScalarType dtype)
      : enabled_(at::autocast::is_autocast_enabled(at::kCPU)), cache_(at::autocast::is_autocast_cache_enabled()) {
    at::autocast::set_autocast_enabled(at::kCPU, true);
    at::autocast::set_autocast_dtype(at::kCPU, dtype);
    at::autocast::set_autocast_cache_enabled(false);
    at::autocast::increment_nesting();
  }
  ~Autocast() {
    if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
    at::autocast::set_autocast_enabled(at::kCPU, enabled_);
    at::autocast::set_autocast_cache_enabled(cache_);
  }
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

 private:
  bool enabled_, cache_;
};

/// Parts 1 to 5 under autocast, which ends within a stage or between two.
Tensors under_autocast(Parts& net, const Tensors& in) {
  at::Tensor h = net.chain(0, 0, in[0]);
  {
    const Autocast region(at::kBFloat16);
    h = net.chain(1, 5, h);
  }
  return {net.chain(6, 7, h.to(in[0].scalar_type()))};
}

/// Parts 1 and 2 under autocast in bfloat16, parts 3 and 4 in float16: of two and of four stages, one has both regions.
Tensors under_two_autocasts(Parts& net, const Tensors& in) {
  at::Tensor h = net.chain(0, 0, in[0]);
  {
    const Autocast region(at::kBFloat16);
    h = net.chain(1, 2, h);
  }
  h = h.to(in[0].scalar_type());
  {
    const Autocast region(at::kHalf);
    h = net.chain(3, 4, h);
  }
  return {net.chain(5, 7, h.to(in[0].scalar_type()))};
}

/// Random numbers of two distributions, in two parts of the model.
Tensors noise(Parts& net, const Tensors& in) {
  at::Tensor h = at::dropout(net.chain(0, 2, in[0]), 0.5, net.is_training());
  h = net.chain(3, 5, h);
  if (net.is_training()) h = at::add(h, at::rand_like(h));
  return {net.chain(6, 7, h)};
}

/// Hooks on activations: within a stage and at its ends, on a value with two readers, on one that a later part reads as
/// well, and on results of linear layers, where the backward's halves part. Factor 2 shows a hook that is called twice
/// or not; a limit shows one that is called for each reader.
Tensors hooked(Parts& net, const Tensors& in) {
  const auto hook = [](const at::Tensor& x, double factor, double limit) {
    return backward::gradient_hook(x, factor, limit);
  };
  constexpr double kNone = std::numeric_limits<double>::infinity();
  at::Tensor h = hook(net.chain(0, 0, in[0]), 2, kNone);
  const at::Tensor early = hook(net.chain(1, 1, h), 2, kNone);
  const auto linear = [&](const std::string& name, const at::Tensor& x, double factor, double limit) {
    return hook(at::linear(x, net.extra(name)->fc().weight(), net.extra(name)->fc().bias()), factor, limit);
  };
  h = hook(net.chain(2, 3, linear("bare0", early, 2, kNone)), 2, kNone);
  h = linear("bare1", net.chain(4, 4, h), 2, 8);
  h = at::add(net.chain(5, 5, h), h);
  return {net.chain(7, 7, at::add(hook(net.chain(6, 6, h), 2, kNone), early))};
}

}  // namespace

}  // namespace gradient_models

std::vector<Family> gradient_families() {
  using namespace gradient_models;
  const std::vector<Variant> both = {
      {.name = "unused-parameters", .forward = unused, .extras = {"aside", "aside_uncalled", "zeroed"}},
      {.name = "hooked", .forward = hooked, .extras = {"bare0", "bare1"}},
      {.name = "frozen-first", .forward = plain, .finish = frozen(0, 5)},
      {.name = "frozen-last", .forward = plain, .finish = frozen(6, 7)},
      {.name = "mixed-double", .forward = by_own_dtype, .finish = inner_dtype(at::kDouble)},
      {.name = "mixed-half", .forward = by_own_dtype, .finish = widen_ends},
  };
  const std::vector<Variant> exact_only = {
      {.name = "frozen-weights", .forward = plain, .finish = freeze_weights},
  };
  std::vector<Family> all = families_of(both, exact_only);
  all.push_back(real_twin({.name = "mixed-bf16", .forward = by_own_dtype, .finish = widen_ends}));
  all.push_back(real_twin({.name = "autocast", .forward = under_autocast}));
  all.push_back(real_twin({.name = "two-autocasts", .forward = under_two_autocasts}));
  all.push_back(real_twin({.name = "noise", .forward = noise}));
  return all;
}

}  // namespace plumbline::models
