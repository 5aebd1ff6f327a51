#include "runtime/backward/halved_node.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>

#include "runtime/error.h"

namespace plumbline::backward {
namespace {

bool overlap(const std::vector<char>& a, const std::vector<char>& b) {
  for (size_t e = 0; e < a.size(); ++e)
    if (a[e] && b[e]) return true;
  return false;
}

}  // namespace

HalvedNode::Gradients HalvedNode::apply(Gradients&& grads) {
  if (c10::GradMode::is_enabled()) throw Error(second_derivative_error());
  std::vector<char> wanted(num_outputs());
  for (size_t e = 0; e < wanted.size(); ++e) wanted[e] = should_compute_output(e);
  const std::lock_guard<std::mutex> lock(halves_);
  const bool all = std::all_of(wanted.begin(), wanted.end(), [](char edge) { return edge; });
  const bool second = !all && between_halves_ && !overlap(wanted, first_edges_);
  between_halves_ = false;
  if (second) return second_half(wanted);
  forget_half();
  if (all) return full(grads);
  Gradients made = first_half(grads, wanted);
  first_edges_ = std::move(wanted);
  between_halves_ = true;
  return made;
}

}  // namespace plumbline::backward
