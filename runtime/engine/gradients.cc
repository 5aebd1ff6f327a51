#include "runtime/engine/gradients.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/add.h>
#include <ATen/ops/div.h>
#include <ATen/ops/empty_like.h>

#include "runtime/error.h"

namespace plumbline {
namespace {

/// Moves one copy's gradient between two stages; whether there is one goes ahead of it.
class GradientMover {
 public:
  GradientMover(Transport& transport, const std::vector<int>& rank_of_stage, const Deadline& deadline)
      : transport_(transport), rank_of_stage_(rank_of_stage), deadline_(deadline) {}

  void send(const at::Tensor& grad, int to_stage, int64_t tag, const std::string& name) {
    const uint8_t present = grad.defined();
    const at::Tensor data = present ? grad.contiguous() : grad;
    Request flag = transport_.isend(&present, 1, rank_of_stage_[to_stage], tag);
    Request body;
    if (present) body = transport_.isend(data.const_data_ptr(), data.nbytes(), rank_of_stage_[to_stage], tag + 1);
    wait(flag, name);
    wait(body, name);
  }

  at::Tensor receive(const at::Tensor& like, int from_stage, int64_t tag, const std::string& name) {
    uint8_t present = 0;
    Request flag = transport_.irecv(&present, 1, rank_of_stage_[from_stage], tag);
    wait(flag, name);
    if (!present) return {};
    at::Tensor grad = at::empty_like(like, like.options().requires_grad(false), at::MemoryFormat::Contiguous);
    Request body = transport_.irecv(grad.mutable_data_ptr(), grad.nbytes(), rank_of_stage_[from_stage], tag + 1);
    wait(body, name);
    return grad;
  }

 private:
  void wait(Request& request, const std::string& name) {
    transport_.wait(request, deadline_, [&] { return "the gradients of shared parameter '" + name + "'"; });
  }

  Transport& transport_;
  const std::vector<int>& rank_of_stage_;
  const Deadline& deadline_;
};

/// Autograd may give two gradients one memory (parameters behind views): then neither may be changed in place.
bool owns_memory(const at::Tensor& grad) { return grad.storage().use_count() == 1; }

template <class Visit>
void for_each_parameter(const std::map<int, StageState>& states, Visit&& visit) {
  for (const auto& [stage, state] : states)
    for (const auto& [name, tensor] : state.parameters)
      if (tensor.requires_grad()) visit(tensor);
}

}  // namespace

GradientStash::GradientStash(const std::map<int, StageState>& states) {
  for_each_parameter(states, [&](const at::Tensor& parameter) {
    entries_.push_back({parameter, std::move(parameter.mutable_grad())});
    parameter.mutable_grad() = at::Tensor();
  });
}

GradientStash::~GradientStash() {
  for (Entry& entry : entries_) entry.parameter.mutable_grad() = std::move(entry.before);
}

void GradientStash::add_back() {
  const c10::NoGradGuard no_grad;
  for (Entry& entry : entries_) {
    if (!entry.before.defined()) continue;
    at::Tensor& grad = entry.parameter.mutable_grad();
    if (grad.defined() && owns_memory(entry.before))
      entry.before.add_(grad);
    else if (grad.defined())
      entry.before = at::add(entry.before, grad);
    grad = std::move(entry.before);
  }
  entries_.clear();
}

int64_t shared_tag_count(const std::vector<SharedParameter>& shared) {
  int64_t count = 0;
  for (const SharedParameter& parameter : shared) count += 4 * (static_cast<int64_t>(parameter.stages.size()) - 1);
  return count;
}

void sum_shared_gradients(const std::map<int, StageState>& states, const std::vector<SharedParameter>& shared,
                          const std::vector<int>& rank_of_stage, Transport& transport, int64_t first_tag,
                          const Deadline& deadline) {
  const c10::NoGradGuard no_grad;
  GradientMover mover(transport, rank_of_stage, deadline);
  int64_t tag = first_tag;
  for (const SharedParameter& parameter : shared) {
    const int owner = parameter.stages.front();
    const auto mine = [&](int stage) { return states.contains(stage); };
    const auto tensor_of = [&](int stage) { return states.at(stage).parameters.at(parameter.name); };
    bool trainable = true;
    for (int stage : parameter.stages)
      if (mine(stage)) trainable = tensor_of(stage).requires_grad();
    // A frozen one takes its tags along, so that every rank counts alike.
    const int64_t next = tag + shared_tag_count({parameter});
    if (!trainable) {
      tag = next;
      continue;
    }
    at::Tensor sum = mine(owner) ? tensor_of(owner).grad() : at::Tensor();
    // To the first stage that uses it, in ascending order; then back to all.
    for (size_t i = 1; i < parameter.stages.size(); ++i, tag += 2) {
      const int stage = parameter.stages[i];
      at::Tensor part = mine(stage) ? tensor_of(stage).grad() : at::Tensor();
      if (mine(stage) && !mine(owner)) mover.send(part, owner, tag, parameter.name);
      if (!mine(owner)) continue;
      if (!mine(stage)) part = mover.receive(tensor_of(owner), stage, tag, parameter.name);
      if (part.defined()) sum = sum.defined() ? at::add(sum, part) : part;
    }
    if (mine(owner)) tensor_of(owner).mutable_grad() = sum;
    for (size_t i = 1; i < parameter.stages.size(); ++i, tag += 2) {
      const int stage = parameter.stages[i];
      if (mine(owner) && mine(stage))
        tensor_of(stage).mutable_grad() = sum.defined() ? sum.clone() : sum;
      else if (mine(owner))
        mover.send(sum, stage, tag, parameter.name);
      else if (mine(stage))
        tensor_of(stage).mutable_grad() = mover.receive(tensor_of(stage), owner, tag, parameter.name);
    }
    PLUMBLINE_CHECK(tag == next, "tags of shared parameter '" + parameter.name + "'");
  }
}

void divide_gradients(const std::map<int, StageState>& states, double divisor) {
  const c10::NoGradGuard no_grad;
  for_each_parameter(states, [&](const at::Tensor& parameter) {
    at::Tensor& grad = parameter.mutable_grad();
    if (grad.defined() && owns_memory(grad))
      grad.div_(divisor);
    else if (grad.defined())
      grad = at::div(grad, divisor);
  });
}

}  // namespace plumbline
