#include "runtime/engine/replicas/gradient_sums.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/add.h>
#include <ATen/ops/empty_like.h>

#include <algorithm>
#include <set>

#include "runtime/graph/host_tensors.h"

namespace plumbline::engine {

void GradientSums::begin(int stage) {
  std::deque<Sum>& sums = of_stage_[stage];
  for (const ParameterCopies& parameter : parameters_)
    if (parameter.is_of_one_stage() && parameter.copies.front().stage == stage)
      begin(parameter, sums, tags_.reduce(stage));
}

void GradientSums::finish(int stage, const transport::Deadline& deadline) {
  if (const auto begun = of_stage_.find(stage); begun != of_stage_.end()) finish(begun->second, deadline);
}

void GradientSums::finish_all(const transport::Deadline& deadline) {
  std::deque<Sum> rest;
  for (const ParameterCopies& parameter : parameters_)
    if (!parameter.is_of_one_stage() || !of_stage_.contains(parameter.copies.front().stage))
      begin(parameter, rest, tags_.at_end());
  for (auto& [stage, sums] : of_stage_) finish(sums, deadline);
  finish(rest, deadline);
}

void GradientSums::begin(const ParameterCopies& parameter, std::deque<Sum>& into, int64_t tag) {
  const c10::NoGradGuard no_grad;
  const auto own = std::ranges::find_if(parameter.copies, [&](const auto& copy) { return is_mine(copy); });
  const at::Tensor& like = copy_of(parameter, *own);
  if (!like.requires_grad()) return;
  const auto empty = [&] {
    return at::empty_like(like, like.options().requires_grad(false), at::MemoryFormat::Contiguous);
  };
  Sum& sum = into.emplace_back();
  sum.of = &parameter;
  // Each of this rank's copies goes to every other rank once; that rank may have several copies itself.
  std::set<int> peers;
  for (const ParameterCopies::Copy& copy : parameter.copies)
    if (!is_mine(copy)) peers.insert(copy.rank);
  for (const ParameterCopies::Copy& copy : parameter.copies) {
    if (!is_mine(copy)) continue;
    const at::Tensor& grad = copy_of(parameter, copy).grad();
    for (const int peer : peers) {
      Message& sent = sum.sent.emplace_back();
      sent.present = grad.defined();
      sent.body = grad.defined() ? graph::with_own_values(grad).contiguous() : empty().zero_();
      sent.flag_request = transport_.isend(&sent.present, 1, peer, tag);
      sent.body_request = transport_.isend(sent.body.const_data_ptr(), sent.body.nbytes(), peer, tag + 1);
    }
  }
  for (const ParameterCopies::Copy& copy : parameter.copies) {
    Message& received = sum.received.emplace_back();
    if (is_mine(copy)) continue;
    received.body = empty();
    received.flag_request = transport_.irecv(&received.present, 1, copy.rank, tag);
    received.body_request =
        transport_.irecv(received.body.mutable_data_ptr(), received.body.nbytes(), copy.rank, tag + 1);
  }
}

void GradientSums::finish(std::deque<Sum>& sums, const transport::Deadline& deadline) {
  const c10::NoGradGuard no_grad;
  for (Sum& sum : sums) {
    const ParameterCopies& parameter = *sum.of;
    for (std::deque<Message>* messages : {&sum.received, &sum.sent})
      for (Message& message : *messages)
        for (transport::Request* request : {&message.flag_request, &message.body_request})
          transport_.wait(*request, deadline,
                          [&] { return "the gradients of '" + parameter.name + "', of which there are copies"; });
    at::Tensor total;
    for (size_t i = 0; i < parameter.copies.size(); ++i) {
      const ParameterCopies::Copy& copy = parameter.copies[i];
      const Message& received = sum.received[i];
      const at::Tensor part = is_mine(copy)      ? copy_of(parameter, copy).grad()
                              : received.present ? received.body
                                                 : at::Tensor();
      if (part.defined()) total = total.defined() ? at::add(total, part) : part;
    }
    bool is_first = true;
    for (const ParameterCopies::Copy& copy : parameter.copies) {
      if (!is_mine(copy)) continue;
      copy_of(parameter, copy).mutable_grad() = is_first || !total.defined() ? total : total.clone();
      is_first = false;
    }
  }
  sums.clear();
}

}  // namespace plumbline::engine
