#include "runtime/transport/adverse_wire.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <random>
#include <thread>

#include "runtime/error.h"
#include "runtime/text/join.h"
#include "runtime/transport/errors.h"
#include "runtime/transport/forwarding_transport.h"
#include "runtime/transport/slot_pool.h"

namespace plumbline::transport {
namespace {

constexpr auto kLongestDelay = std::chrono::microseconds(2000);
constexpr auto kPause = std::chrono::microseconds(50);  // between looks at sends that have not begun

/// An operation of the caller.
struct Operation {
  bool begun = false;
  Request inner;
  // A send that has not begun.
  const void* source = nullptr;
  int peer = 0;
  int64_t tag = 0;
  Clock::time_point due;
  // A receive into memory of its own.
  void* target = nullptr;
  size_t bytes = 0;
  std::vector<std::byte> arrived;
};

class AdverseWire : public ForwardingTransport {
 public:
  AdverseWire(Transport& inner, Wire wire, uint64_t seed)
      : ForwardingTransport(inner), wire_(wire), random_(seed * 1000003 + static_cast<uint64_t>(inner.rank())) {}

  Request isend(const void* data, size_t bytes, int peer, int64_t tag) override {
    check_operation(*this, Direction::Send, peer, tag);
    begin_due_sends();
    Request request;
    Operation& send = operations_.take(request);
    send = {};
    send.source = data, send.bytes = bytes, send.peer = peer, send.tag = tag;
    if (wire_.slow || wire_.shuffle) {
      send.due = Clock::now() + (wire_.slow ? random_delay() : Clock::duration::zero());
      waiting_[peer].push_back(&send);
      ++sends_waiting_;
    } else {
      begin(send);
    }
    return request;
  }

  Request irecv(void* data, size_t bytes, int peer, int64_t tag) override {
    begin_due_sends();
    Request request;
    Operation& receive = operations_.take(request);
    std::vector<std::byte> memory = std::move(receive.arrived);  // reused, as slots are
    receive = {};
    receive.begun = true;
    if (wire_.poison) {
      memory.resize(bytes);
      receive.arrived = std::move(memory);
      receive.target = data, receive.bytes = bytes;
      if (bytes > 0) std::memset(data, 0xff, bytes);
      data = receive.arrived.data();
    }
    receive.inner = guarded([&] { return inner_.irecv(data, bytes, peer, tag); });
    return request;
  }

  bool test(Request& request) override {
    begin_due_sends();
    if (request.empty()) return true;
    Operation& operation = operations_.at(request, rank());
    if (!is_complete(operation)) return false;
    complete(request, operation);
    return true;
  }

  void wait(Request& request, const Deadline& deadline, const WaitContext& context) override {
    if (request.empty()) return;
    Operation& operation = operations_.at(request, rank());
    // A blocked rank must still begin its other sends, for which a peer may be waiting.
    while (sends_waiting_ > 0) {
      begin_due_sends();
      if (is_complete(operation)) return complete(request, operation);
      if (sends_waiting_ > 0) std::this_thread::sleep_for(kPause);
    }
    guarded([&] { inner_.wait(operation.inner, deadline, context); });
    complete(request, operation);
  }

  void withdraw() noexcept override {
    waiting_.clear();
    sends_waiting_ = 0;
    inner_.withdraw();
    operations_.drain([](Operation&) {});
  }

 private:
  bool is_complete(Operation& operation) {
    return operation.begun && guarded([&] { return inner_.test(operation.inner); });
  }

  Clock::duration random_delay() {
    return std::chrono::microseconds(std::uniform_int_distribution<int64_t>(0, kLongestDelay.count())(random_));
  }

  void begin(Operation& send) {
    send.inner = guarded([&] { return inner_.isend(send.source, send.bytes, send.peer, send.tag); });
    send.begun = true;
  }

  void begin_due_sends() {
    if (sends_waiting_ == 0) return;
    std::vector<int> peers;
    for (const auto& [peer, sends] : waiting_)
      if (!sends.empty()) peers.push_back(peer);
    if (wire_.shuffle) std::ranges::shuffle(peers, random_);
    const Clock::time_point now = Clock::now();
    for (const int peer : peers) {
      std::deque<Operation*>& sends = waiting_[peer];
      // With shuffle, another peer's sends may overtake: a coin decides how many begin now.
      while (!sends.empty() && sends.front()->due <= now && !(wire_.shuffle && random_() % 2 == 0)) {
        Operation& send = *sends.front();
        sends.pop_front();
        --sends_waiting_;
        begin(send);
      }
    }
  }

  void complete(Request& request, Operation& operation) {
    if (operation.target != nullptr && operation.bytes > 0)
      std::memcpy(operation.target, operation.arrived.data(), operation.bytes);
    operations_.give_back(request);
  }

  Wire wire_;
  std::mt19937_64 random_;
  SlotPool<Operation> operations_;
  std::map<int, std::deque<Operation*>> waiting_;  ///< by peer, in the order of isend()
  size_t sends_waiting_ = 0;
};

}  // namespace

const std::vector<std::string>& wire_words() {
  static const std::vector<std::string> words = {"slow", "poison", "shuffle"};
  return words;
}

Wire parse_wire(const std::string& text) {
  Wire wire;
  bool* const members[] = {&wire.slow, &wire.poison, &wire.shuffle};
  for (size_t begin = 0; !text.empty() && begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const std::string word = text.substr(begin, end - begin);
    const auto known = std::ranges::find(wire_words(), word);
    if (known == wire_words().end())
      throw InputError("--wire: '" + word + "' is unknown; expected " + join(wire_words()) +
                       ", or several with commas between");
    *members[known - wire_words().begin()] = true;
    begin = end + 1;
  }
  return wire;
}

std::unique_ptr<Transport> adverse_wire(Transport& inner, Wire wire, uint64_t seed) {
  return std::make_unique<AdverseWire>(inner, wire, seed);
}

}  // namespace plumbline::transport
