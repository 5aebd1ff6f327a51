// Mixtures of experts: two places with experts between the parts of a chain. The real model weights them by the softmax
// of a gate; the exact one selects the expert by the row's number. All experts process all rows, so that shapes do not
// depend on the selection; the output of an unselected expert is multiplied by zero.

#include <ATen/ops/add.h>
#include <ATen/ops/eq.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/softmax.h>

#include "reference/models/parts/parts.h"

namespace plumbline::models {
namespace expert_models {
namespace {

using Tensors = std::vector<at::Tensor>;

constexpr int kExperts = 3;

std::string expert(int place, int i) { return "expert" + std::to_string(place) + "_" + std::to_string(i); }

std::vector<std::string> experts_and_gates(bool gates) {
  std::vector<std::string> names;
  for (int place = 0; place < 2; ++place) {
    for (int i = 0; i < kExperts; ++i) names.push_back(expert(place, i));
    if (gates) names.push_back("gate" + std::to_string(place));
  }
  return names;
}

at::Tensor mixed(Parts& net, int place, const at::Tensor& h, const std::function<at::Tensor(int)>& share) {
  at::Tensor sum;
  for (int i = 0; i < kExperts; ++i) {
    const at::Tensor part = at::mul(capture::call(net.extra(expert(place, i)), h), share(i).unsqueeze(1));
    sum = sum.defined() ? at::add(sum, part) : part;
  }
  return sum;
}

Tensors gated(Parts& net, const Tensors& in) {
  at::Tensor h = in[0];
  for (int place = 0; place < 2; ++place) {
    h = net.chain(4 * place, 4 * place + 1, h);
    const at::Tensor shares =
        at::softmax(capture::call(net.extra("gate" + std::to_string(place)), h).narrow(1, 0, kExperts), 1);
    h = mixed(net, place, h, [&](int i) { return shares.select(1, i); });
    h = net.chain(4 * place + 2, 4 * place + 3, h);
  }
  return {h};
}

/// In the second place the first expert is never selected: its gradients exist and are zero.
Tensors routed(Parts& net, const Tensors& in) {
  at::Tensor h = in[0];
  for (int place = 0; place < 2; ++place) {
    h = net.chain(4 * place, 4 * place + 1, h);
    const at::Tensor chosen = place == 0 ? in[1].remainder(kExperts) : at::add(in[1].remainder(kExperts - 1), 1);
    h = mixed(net, place, h, [&](int i) { return at::eq(chosen, i).to(h.scalar_type()); });
    h = net.chain(4 * place + 2, 4 * place + 3, h);
  }
  return {h};
}

}  // namespace

}  // namespace expert_models

std::vector<Family> expert_families() {
  using namespace expert_models;
  using enum Content;
  return {real_twin({.name = "experts", .forward = gated, .extras = experts_and_gates(true)}),
          exact_twin({.name = "experts",
                      .forward = routed,
                      .inputs = {{"x", Values}, {"expert", Ids}},
                      .extras = experts_and_gates(false)})};
}

}  // namespace plumbline::models
