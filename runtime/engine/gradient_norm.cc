#include "runtime/engine/gradient_norm.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/abs.h>
#include <ATen/ops/max.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/sum.h>

#include <cmath>
#include <cstring>
#include <string>

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
      const at::Tensor grad = parameter.grad().to(at::kDouble);
      shares[name] = (norm == Norm::Two ? at::sum(at::mul(grad, grad)) : at::max(at::abs(grad))).item<double>();
    }
  return shares;
}

/// "name\0" and the eight bytes of the number, for each parameter.
std::vector<std::byte> packed(const Shares& shares) {
  std::vector<std::byte> bytes;
  const auto append = [&](const void* from, size_t size) {
    const auto* first = static_cast<const std::byte*>(from);
    bytes.insert(bytes.end(), first, first + size);
  };
  for (const auto& [name, share] : shares) {
    append(name.c_str(), name.size() + 1);
    append(&share, sizeof share);
  }
  return bytes;
}

void unpack(std::span<const std::byte> bytes, Shares& into) {
  const auto* text = reinterpret_cast<const char*>(bytes.data());
  for (size_t at = 0; at < bytes.size();) {
    const std::string name = text + at;
    double share = 0;
    std::memcpy(&share, text + at + name.size() + 1, sizeof share);
    into.emplace(name, share);
    at += name.size() + 1 + sizeof share;
  }
}

/// NaN if one is NaN, unlike std::max.
double larger(double a, double b) { return std::isnan(a) || a > b ? a : b; }

}  // namespace

double gradient_norm(const std::map<int, split::StageState>& states, Norm norm, transport::Transport& transport,
                     const transport::Deadline& deadline) {
  Shares all;
  for (const std::vector<std::byte>& bytes :
       transport::gather_bytes(transport, 0, packed(own_shares(states, norm)), deadline))
    unpack(bytes, all);
  double total = 0;
  for (const auto& [name, share] : all) total = norm == Norm::Two ? total + share : larger(total, share);
  total = norm == Norm::Two ? std::sqrt(total) : total;
  const auto* first = reinterpret_cast<const std::byte*>(&total);
  const std::vector<std::byte> agreed = transport::broadcast_bytes(transport, 0, {first, sizeof total}, deadline);
  std::memcpy(&total, agreed.data(), sizeof total);
  return total;
}

}  // namespace plumbline::engine
