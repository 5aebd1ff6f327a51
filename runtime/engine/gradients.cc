#include "runtime/engine/gradients.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/add.h>
#include <ATen/ops/div.h>
#include <ATen/ops/empty_like.h>

#include <algorithm>
#include <deque>
#include <utility>

namespace plumbline::engine {
namespace {

/// Moves copies' gradients between ranks; a flag that says whether one exists precedes each. Between two ranks they
/// arrive in the order in which they were sent.
class GradientMover {
 public:
  GradientMover(transport::Transport& transport, const transport::Deadline& deadline)
      : transport_(transport), deadline_(deadline) {}
  ~GradientMover() {
    if (!sent_.empty()) transport_.withdraw();
  }
  GradientMover(const GradientMover&) = delete;
  GradientMover& operator=(const GradientMover&) = delete;

  /// Does not block.
  void send(const at::Tensor& grad, int rank, int64_t tag) {
    Sent& sent = sent_.emplace_back();
    sent.present = grad.defined();
    sent.flag_request = transport_.isend(&sent.present, 1, rank, tag);
    if (!grad.defined()) return;
    sent.body = grad.contiguous();
    sent.body_request = transport_.isend(sent.body.const_data_ptr(), sent.body.nbytes(), rank, tag + 1);
  }

  at::Tensor receive(const at::Tensor& like, int rank, int64_t tag, const std::string& name) {
    uint8_t present = 0;
    transport::Request flag = transport_.irecv(&present, 1, rank, tag);
    wait(flag, name);
    if (!present) return {};
    at::Tensor grad = at::empty_like(like, like.options().requires_grad(false), at::MemoryFormat::Contiguous);
    transport::Request body = transport_.irecv(grad.mutable_data_ptr(), grad.nbytes(), rank, tag + 1);
    wait(body, name);
    return grad;
  }

  void finish_sends() {
    for (Sent& sent : sent_)
      for (transport::Request* request : {&sent.flag_request, &sent.body_request})
        transport_.wait(*request, deadline_, "the end of the step: a gradient of a copy was not taken");
    sent_.clear();
  }

 private:
  struct Sent {
    uint8_t present = 0;
    at::Tensor body;
    transport::Request flag_request, body_request;
  };

  void wait(transport::Request& request, const std::string& name) {
    transport_.wait(request, deadline_, [&] { return "the gradients of '" + name + "', of which there are copies"; });
  }

  transport::Transport& transport_;
  const transport::Deadline& deadline_;
  std::deque<Sent> sent_;  // sent memory must stay where it is
};

bool owns_memory(const at::Tensor& grad) { return grad.storage().use_count() == 1; }

template <class Visit>
void for_each_parameter(const std::map<int, split::StageState>& states, Visit&& visit) {
  for (const auto& [stage, state] : states)
    for (const auto& [name, tensor] : state.parameters) visit(tensor);
}

}  // namespace

GradientStash::GradientStash(const std::map<int, split::StageState>& states) {
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
    // Earlier gradients may belong to other code.
    if (grad.defined() && owns_memory(entry.before))
      entry.before.add_(grad);
    else if (grad.defined())
      entry.before = at::add(entry.before, grad);
    grad = std::move(entry.before);
  }
  entries_.clear();
}

void separate_gradients(const split::StageState& state) {
  const c10::NoGradGuard no_grad;
  for (const auto& [name, parameter] : state.parameters) {
    at::Tensor& grad = parameter.mutable_grad();
    if (grad.defined() && !owns_memory(grad)) grad = grad.clone();
  }
}

std::vector<ParameterCopies> parameter_copies(const std::map<int, split::StageState>& states,
                                              const std::vector<split::SharedParameter>& shared,
                                              const schedule::Schedule& schedule) {
  std::map<std::pair<int, std::string>, ParameterCopies> found;
  const auto add = [&](const std::string& name, const std::vector<int>& stages) {
    ParameterCopies parameter{name, {}};
    for (int stage : stages) {
      const size_t first = parameter.copies.size();
      for (int replica = 0; replica < schedule.replicas(); ++replica) {
        const int rank = schedule.rank_of_stage[replica * schedule.stages + stage];
        if (std::none_of(parameter.copies.begin() + static_cast<std::ptrdiff_t>(first), parameter.copies.end(),
                         [&](const ParameterCopies::Copy& copy) { return copy.rank == rank; }))
          parameter.copies.push_back({stage, rank});
      }
    }
    if (parameter.copies.size() > 1) found.emplace(std::pair(stages.front(), name), std::move(parameter));
  };
  for (const auto& [stage, state] : states)
    for (const auto& [name, tensor] : state.parameters) {
      const auto several = std::find_if(shared.begin(), shared.end(), [&](const split::SharedParameter& parameter) {
        return parameter.name == name;
      });
      add(name, several == shared.end() ? std::vector<int>{stage} : several->stages);
    }
  std::vector<ParameterCopies> parameters;
  for (auto& [key, parameter] : found) parameters.push_back(std::move(parameter));
  return parameters;
}

void sum_copies(const std::map<int, split::StageState>& states, const std::vector<ParameterCopies>& parameters,
                transport::Transport& transport, int64_t first_tag, const transport::Deadline& deadline) {
  const c10::NoGradGuard no_grad;
  using Copy = ParameterCopies::Copy;
  const auto mine = [&](const Copy& copy) { return copy.rank == transport.rank(); };
  GradientMover mover(transport, deadline);
  const auto for_each = [&](const auto& visit) {
    for (const ParameterCopies& parameter : parameters) {
      const auto tensor_of = [&](const Copy& copy) { return states.at(copy.stage).parameters.at(parameter.name); };
      const auto local = std::find_if(parameter.copies.begin(), parameter.copies.end(), mine);
      if (tensor_of(*local).requires_grad()) visit(parameter, tensor_of);
    }
  };
  // To the rank of the first copy, without blocking; that rank sums them and sends the sum to all.
  for_each([&](const ParameterCopies& parameter, const auto& tensor_of) {
    const Copy& owner = parameter.copies.front();
    for (const Copy& copy : parameter.copies)
      if (mine(copy) && !mine(owner)) mover.send(tensor_of(copy).grad(), owner.rank, first_tag);
  });
  for_each([&](const ParameterCopies& parameter, const auto& tensor_of) {
    const Copy& owner = parameter.copies.front();
    if (!mine(owner)) return;
    at::Tensor sum = tensor_of(owner).grad();
    for (size_t i = 1; i < parameter.copies.size(); ++i) {
      const Copy& copy = parameter.copies[i];
      const at::Tensor part =
          mine(copy) ? tensor_of(copy).grad() : mover.receive(tensor_of(owner), copy.rank, first_tag, parameter.name);
      if (part.defined()) sum = sum.defined() ? at::add(sum, part) : part;
    }
    tensor_of(owner).mutable_grad() = sum;
    for (size_t i = 1; i < parameter.copies.size(); ++i) {
      const Copy& copy = parameter.copies[i];
      if (mine(copy))
        tensor_of(copy).mutable_grad() = sum.defined() ? sum.clone() : sum;
      else
        mover.send(sum, copy.rank, first_tag + 2);
    }
  });
  for_each([&](const ParameterCopies& parameter, const auto& tensor_of) {
    const Copy& owner = parameter.copies.front();
    if (mine(owner)) return;
    for (const Copy& copy : parameter.copies)
      if (mine(copy))
        tensor_of(copy).mutable_grad() = mover.receive(tensor_of(copy), owner.rank, first_tag + 2, parameter.name);
  });
  mover.finish_sends();
}

void divide_gradients(const std::map<int, split::StageState>& states, double divisor) {
  const c10::NoGradGuard no_grad;
  for_each_parameter(states, [&](const at::Tensor& parameter) {
    at::Tensor& grad = parameter.mutable_grad();
    if (grad.defined()) grad.div_(divisor);
  });
}

}  // namespace plumbline::engine
