#include "conformance/mutants/hooked_transport.h"

#include <ATen/ops/abs.h>
#include <ATen/ops/any.h>
#include <ATen/ops/from_blob.h>

#include <array>
#include <deque>
#include <map>
#include <utility>

#include "reference/loss.h"
#include "runtime/engine/replicas/parameter_copies.h"
#include "runtime/transport/arrival_transport.h"

namespace plumbline::conformance {
namespace {

Message read_tag(int64_t tag, int microbatches, const engine::CopyTags& tags) {
  Message message;
  message.tag = tag;
  if (tag >= tags.first() + 2 && tag < tags.end()) {
    message.load = std::array{Load::CopyFlag, Load::Copy, Load::Shard}[(tag - tags.first() - 2) % 3];
  } else if (tag >= tags.first() && tag < tags.end()) {
    message.load = std::array{Load::CopyFlag, Load::Copy}[tag - tags.first()];
  } else if (tag >= 0 && tag < tags.first()) {
    message.load = tag / microbatches % 2 == 0 ? Load::Value : Load::Gradient;
    message.channel = static_cast<int>(tag / (2 * microbatches));
    message.microbatch = static_cast<int>(tag % microbatches);
  }
  return message;
}

struct ArrivingMessage {
  void* data;
  size_t bytes;
  int peer;
  int64_t tag, number;
};

class HookedTransport : public transport::ArrivalTransport<ArrivingMessage> {
 public:
  HookedTransport(transport::Transport& inner, const FaultSite& site, TransportHooks hooks)
      : ArrivalTransport(inner), site_(site), hooks_(std::move(hooks)) {}

  transport::Request isend(const void* data, size_t bytes, int peer, int64_t tag) override {
    if (!hooks_.send) return inner_.isend(data, bytes, peer, tag);
    Message before = message(data, bytes, peer, tag);
    if (before.load == Load::Other) return inner_.isend(data, bytes, peer, tag);
    before.number = sends_[{peer, tag}]++;
    Message after = before;
    hooks_.send(after);
    if (after.times == 1 && after.tag == tag && after.peer == peer && after.body == before.body)
      return inner_.isend(data, bytes, peer, tag);
    site_.happens();
    transport::Request last;
    kept_.push_back(std::move(after.body));
    for (int i = 0; i < after.times; ++i) {
      const transport::Request request = inner_.isend(kept_.back().data(), kept_.back().size(), after.peer, after.tag);
      if (i == 0) last = request;
    }
    return last;
  }

  transport::Request irecv(void* data, size_t bytes, int peer, int64_t tag) override {
    const transport::Request request = inner_.irecv(data, bytes, peer, tag);
    if (!hooks_.arrived) return request;
    return expect(request, {data, bytes, peer, tag, receives_[{peer, tag}]++});
  }

 private:
  Message message(const void* data, size_t bytes, int peer, int64_t tag) const {
    Message message = read_tag(tag, site_.microbatches(), {max_tag(), site_.schedule.stages});
    const auto* begin = static_cast<const std::byte*>(data);
    message.peer = peer;
    message.body.assign(begin, begin + bytes);
    return message;
  }

  void arrive(const ArrivingMessage& arriving) override {
    Message before = message(arriving.data, arriving.bytes, arriving.peer, arriving.tag);
    if (before.load == Load::Other) return;
    before.number = arriving.number;
    const std::span<std::byte> body(static_cast<std::byte*>(arriving.data), arriving.bytes);
    hooks_.arrived(before, body);
    if (!std::equal(body.begin(), body.end(), before.body.begin())) site_.happens();
  }

  FaultSite site_;
  TransportHooks hooks_;
  std::deque<std::vector<std::byte>> kept_;                      // a deque, as the bytes of a send must not move
  std::map<std::pair<int, int64_t>, int64_t> sends_, receives_;  // by peer and tag: how many
};

}  // namespace

void Message::move_to(int new_channel, int new_microbatch, int microbatches) {
  tag += int64_t{2} * (new_channel - channel) * microbatches + (new_microbatch - microbatch);
  channel = new_channel;
  microbatch = new_microbatch;
}

std::unique_ptr<transport::Transport> with_hooks(transport::Transport& inner, const FaultSite& site,
                                                 TransportHooks hooks) {
  return std::make_unique<HookedTransport>(inner, site, std::move(hooks));
}

at::Tensor as_numbers(std::span<std::byte> bytes, const FaultSite& site) {
  const at::ScalarType type = reference::scalar_type(site.of.dtype);
  const size_t size = c10::elementSize(type);
  if (bytes.empty() || bytes.size() % size != 0) return {};
  const at::Tensor numbers = at::from_blob(bytes.data(), {static_cast<int64_t>(bytes.size() / size)}, type);
  // The halves of a 64-bit integer, read as floats, are tiny.
  const at::Tensor sizes = numbers.abs();
  if (((sizes != 0) & (sizes < 1e-30)).any().item<bool>()) return {};
  return numbers;
}

}  // namespace plumbline::conformance
