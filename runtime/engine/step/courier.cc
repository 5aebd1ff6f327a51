#include "runtime/engine/step/courier.h"

#include "runtime/clock.h"
#include "runtime/engine/step/stopwatch.h"
#include "runtime/error.h"

namespace plumbline::engine {

PendingReceive Courier::post_receive(const split::Boundary& boundary, int peer, int64_t tag) {
  // A number, which a stage reads on the host, stays there.
  const bool is_tensor = boundary.value.kind == graph::ValueKind::Tensor;
  const at::TensorOptions options =
      at::TensorOptions(boundary.value.dtype).device(is_tensor ? context_.options.device : c10::kCPU);
  return engine::post_receive(context_.transport, options, boundary.value.sizes, peer, tag, tag + tag_count_,
                              context_.options.keep_strides);
}

at::Tensor Courier::receive(PendingReceive& pending, const transport::WaitContext& what) {
  wait(pending.body_request, what);
  if (pending.strides.defined()) wait(pending.strides_request, what);
  if (context_.options.trace) last_arrival_ = clock_seconds();
  return received_tensor(std::move(pending));
}

void Courier::send(const schedule::Action& by, const OutgoingTensor& tensor, int rank, int64_t tag) {
  const auto start = [&](const at::Tensor& part, int64_t part_tag) {
    sends_.push_back({by, part, context_.transport.isend(part.const_data_ptr(), part.nbytes(), rank, part_tag)});
  };
  start(tensor.body, tag);
  if (tensor.strides.defined()) start(tensor.strides, tag + tag_count_);
}

void Courier::release_completed_sends() {
  for (; first_send_ < sends_.size() && context_.transport.test(sends_[first_send_].request); ++first_send_)
    sends_[first_send_].tensor.reset();
  if (first_send_ * 2 < sends_.size()) return;  // moving the rest costs no more than the completed ones did
  sends_.erase(sends_.begin(), sends_.begin() + static_cast<std::ptrdiff_t>(first_send_));
  first_send_ = 0;
}

void Courier::wait_send(const schedule::Action& wait_action) {
  const schedule::Action send{wait_action.stage,
                              wait_action.type == schedule::ActionType::WAIT_SEND_F ? schedule::ActionType::SEND_F
                                                                                    : schedule::ActionType::SEND_B,
                              wait_action.microbatch};
  for (size_t i = first_send_; i < sends_.size(); ++i) {
    if (sends_[i].by != send) continue;
    wait(sends_[i].request, [&] { return place(send.stage, send.microbatch) + ": its message was not taken"; });
    sends_[i].tensor.reset();
  }
}

void Courier::finish_sends() {
  for (size_t i = first_send_; i < sends_.size(); ++i)
    wait(sends_[i].request, [] { return std::string("the end of the step: a value sent was not taken"); });
  sends_.clear();
  first_send_ = 0;
}

void Courier::wait(transport::Request& request, const transport::WaitContext& what) {
  const Stopwatch stopwatch(waiting_);
  try {
    context_.transport.wait(request, transport::Deadline::after(context_.options.timeout), what);
  } catch (const TimeoutError&) {
    throw;
  } catch (const PeerError&) {
    throw;
  } catch (const Error& error) {
    throw Error(what.text() + ": " + error.what());  // a message of another size
  }
}

}  // namespace plumbline::engine
