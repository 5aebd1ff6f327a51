#include "conformance/proof/executions/wire.h"

#include <utility>

#include "conformance/proof/shapes/hollow_memory.h"
#include "runtime/transport/arrival_transport.h"

namespace plumbline::proof {
namespace {

struct ArrivingTerm {
  void* data;
  size_t bytes;
  Wire::Channel channel;
  size_t number;
};

class RecordingTransport : public transport::ArrivalTransport<ArrivingTerm> {
 public:
  RecordingTransport(transport::Transport& inner, Memory& memory, Wire& wire)
      : ArrivalTransport(inner), memory_(memory), wire_(wire) {}

  transport::Request isend(const void* data, size_t bytes, int peer, int64_t tag) override {
    wire_.post_send({rank(), peer, tag}, memory_.read_bytes(data, bytes));
    if (is_hollow(data)) bytes = 0;  // only the term travels
    return inner_.isend(data, bytes, peer, tag);
  }

  transport::Request irecv(void* data, size_t bytes, int peer, int64_t tag) override {
    const Wire::Channel channel{peer, rank(), tag};
    const ArrivingTerm arriving{data, bytes, channel, wire_.post_receive(channel)};
    if (is_hollow(data)) bytes = 0;
    return expect(inner_.irecv(data, bytes, peer, tag), arriving);
  }

 private:
  void arrive(const ArrivingTerm& arriving) override {
    memory_.define_bytes(arriving.data, arriving.bytes, wire_.take(arriving.channel, arriving.number));
  }

  Memory& memory_;
  Wire& wire_;
};

}  // namespace

void Wire::post_send(const Channel& channel, std::optional<Value> value) {
  const std::lock_guard lock(mutex_);
  Messages& messages = channels_[channel];
  messages.under_way.emplace(messages.sent++, std::move(value));
}

size_t Wire::post_receive(const Channel& channel) {
  const std::lock_guard lock(mutex_);
  return channels_[channel].awaited++;
}

std::optional<Value> Wire::take(const Channel& channel, size_t number) {
  const std::lock_guard lock(mutex_);
  Messages& messages = channels_[channel];
  const auto message = messages.under_way.extract(number);
  return message.empty() ? std::nullopt : std::move(message.mapped());
}

std::unique_ptr<transport::Transport> recording_transport(transport::Transport& inner, Memory& memory, Wire& wire) {
  return std::make_unique<RecordingTransport>(inner, memory, wire);
}

}  // namespace plumbline::proof
