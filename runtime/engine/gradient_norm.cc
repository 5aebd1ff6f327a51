#include "runtime/engine/gradient_norm.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/abs.h>
#include <ATen/ops/max.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/sum.h>

#include <cmath>
#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "runtime/engine/plan/agreement.h"
#include "runtime/transport/collectives.h"

namespace plumbline::engine {
namespace {

/// By parameter: the sum of squares, or the largest absolute value.
using Shares = std::map<std::string, double>;

Shares own_shares(const std::map<int, split::StageState>& states, Norm norm) {
  const c10::NoGradGuard no_grad;
  Shares shares;
  for (const auto& [stage, state] : states)
    for (const auto& [name, parameter] : state.parameters) {
      if (!parameter.grad().defined() || parameter.numel() == 0 || shares.contains(name)) continue;
      const at::Tensor sizes = at::abs(parameter.grad().to(parameter.is_complex() ? at::kComplexDouble : at::kDouble));
      shares[name] = (norm == Norm::Two ? at::sum(at::mul(sizes, sizes)) : at::max(sizes)).item<double>();
    }
  return shares;
}

/// The name and the eight bytes of the number, for each parameter.
Beliefs texts(const Shares& shares) {
  Beliefs list;
  for (const auto& [name, share] : shares) {
    list.push_back(name);
    list.emplace_back(reinterpret_cast<const char*>(&share), sizeof share);
  }
  return list;
}

void take(const Beliefs& list, Shares& into) {
  for (size_t i = 0; i + 1 < list.size(); i += 2) {
    double share = 0;
    std::memcpy(&share, list[i + 1].data(), sizeof share);
    into.emplace(list[i], share);
  }
}

/// NaN if one is NaN, unlike std::max.
double larger(double a, double b) { return std::isnan(a) || a > b ? a : b; }

}  // namespace

double gradient_norm(const std::map<int, split::StageState>& states, Norm norm, transport::Transport& transport,
                     const transport::Deadline& deadline) {
  Shares all;
  const std::string mine = packed(texts(own_shares(states, norm)));
  for (const std::vector<std::byte>& theirs :
       transport::gather_bytes(transport, 0, std::as_bytes(std::span(mine)), deadline))
    take(unpacked(theirs), all);
  double total = 0;
  for (const auto& [name, share] : all) total = norm == Norm::Two ? total + share : larger(total, share);
  total = norm == Norm::Two ? std::sqrt(total) : total;
  const auto* first = reinterpret_cast<const std::byte*>(&total);
  const std::vector<std::byte> agreed = transport::broadcast_bytes(transport, 0, {first, sizeof total}, deadline);
  std::memcpy(&total, agreed.data(), sizeof total);
  return total;
}

}  // namespace plumbline::engine
