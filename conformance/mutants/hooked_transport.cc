#include "conformance/mutants/hooked_transport.h"

#include <ATen/ops/abs.h>
#include <ATen/ops/any.h>
#include <ATen/ops/from_blob.h>

#include <array>
#include <deque>
#include <map>
#include <utility>

#include "reference/loss.h"
#include "runtime/engine/gradients.h"
#include "runtime/transport/forwarding_transport.h"

namespace plumbline::conformance {
namespace {

Message read_tag(int64_t tag, int microbatches, int64_t max_tag) {
  Message message;
  message.tag = tag;
  const int64_t first_copy = max_tag - engine::kCopyTags;
  if (tag >= first_copy && tag < max_tag) {
    message.load = std::array{Load::CopyFlag, Load::Copy, Load::SumFlag, Load::Sum}[tag - first_copy];
  } else if (tag >= 0 && tag < first_copy) {
    message.load = tag / microbatches % 2 == 0 ? Load::Value : Load::Gradient;
    message.channel = static_cast<int>(tag / (2 * microbatches));
    message.microbatch = static_cast<int>(tag % microbatches);
  }
  return message;
}

class HookedTransport : public transport::ForwardingTransport {
 public:
  HookedTransport(transport::Transport& inner, const FaultSite& site, TransportHooks hooks)
      : transport::ForwardingTransport(inner), site_(site), hooks_(std::move(hooks)) {}

  transport::Request isend(const void* data, size_t bytes, int peer, int64_t tag) override {
    const Message before = message(data, bytes, peer, tag);
    if (!hooks_.send || before.load == Load::Other) return inner_.isend(data, bytes, peer, tag);
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
    transport::Request request = inner_.irecv(data, bytes, peer, tag);
    if (!hooks_.arrived) return request;
    const Arriving arriving{data, bytes, peer, tag};
    if (request.empty())
      arrive(arriving);
    else
      arriving_.insert_or_assign({request.slot(), request.generation()}, arriving);
    return request;
  }

  bool test(transport::Request& request) override {
    const std::pair key{request.slot(), request.generation()};
    if (!inner_.test(request)) return false;
    arrive(key);
    return true;
  }

  void wait(transport::Request& request, const transport::Deadline& deadline,
            const transport::WaitContext& context) override {
    const std::pair key{request.slot(), request.generation()};
    inner_.wait(request, deadline, context);
    arrive(key);
  }

  void withdraw() noexcept override {
    arriving_.clear();
    inner_.withdraw();
  }

 private:
  struct Arriving {
    void* data;
    size_t bytes;
    int peer;
    int64_t tag;
  };

  Message message(const void* data, size_t bytes, int peer, int64_t tag) const {
    Message message = read_tag(tag, site_.microbatches(), max_tag());
    const auto* begin = static_cast<const std::byte*>(data);
    message.peer = peer;
    message.body.assign(begin, begin + bytes);
    return message;
  }

  void arrive(const std::pair<uint32_t, uint32_t>& key) {
    const auto it = arriving_.find(key);
    if (it == arriving_.end()) return;
    const Arriving arriving = it->second;
    arriving_.erase(it);
    arrive(arriving);
  }

  void arrive(const Arriving& arriving) {
    const Message before = message(arriving.data, arriving.bytes, arriving.peer, arriving.tag);
    if (before.load == Load::Other) return;
    const std::span<std::byte> body(static_cast<std::byte*>(arriving.data), arriving.bytes);
    hooks_.arrived(before, body);
    if (!std::equal(body.begin(), body.end(), before.body.begin())) site_.happens();
  }

  FaultSite site_;
  TransportHooks hooks_;
  std::deque<std::vector<std::byte>> kept_;  // a deque, as the bytes of a send must not move
  std::map<std::pair<uint32_t, uint32_t>, Arriving> arriving_;
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
