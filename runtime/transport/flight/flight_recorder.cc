#include "runtime/transport/flight/flight_recorder.h"

#include <algorithm>
#include <string>
#include <vector>

#include "runtime/clock.h"
#include "runtime/error.h"
#include "runtime/transport/forwarding_transport.h"

namespace plumbline::transport::flight {
namespace {

class FlightRecorder : public ForwardingTransport {
 public:
  FlightRecorder(Transport& inner, FlightLog& log) : ForwardingTransport(inner), log_(log) {}

  Request isend(const void* data, size_t bytes, int peer, int64_t tag) override {
    return posted(ForwardingTransport::isend(data, bytes, peer, tag),
                  {.kind = EventKind::Send, .peer = peer, .tag = tag, .bytes = bytes});
  }
  Request irecv(void* data, size_t bytes, int peer, int64_t tag) override {
    return posted(ForwardingTransport::irecv(data, bytes, peer, tag),
                  {.kind = EventKind::Receive, .is_receive = true, .peer = peer, .tag = tag, .bytes = bytes});
  }
  void wait(Request& request, const Deadline& deadline, const WaitContext& context) override {
    if (request.empty()) return;
    const size_t slot = request.slot();  // test() may empty the request
    if (ForwardingTransport::test(request)) return;
    Event event = slot < messages_.size() ? messages_[slot] : Event();
    event.kind = EventKind::Blocked;
    const std::string text = context.text();
    event.what[text.copy(event.what, sizeof event.what - 1)] = 0;
    add(event);
    try {
      ForwardingTransport::wait(request, deadline, context);
      event.kind = EventKind::Done;
    } catch (const TimeoutError&) {
      event.kind = EventKind::TimedOut;
      add(event);
      throw;
    }
    add(event);
  }

 private:
  Request posted(Request request, Event event) {
    add(event);
    if (request.empty()) return request;
    if (request.slot() >= messages_.size()) messages_.resize(request.slot() + 1);
    messages_[request.slot()] = event;
    return request;
  }
  void add(Event& event) {
    event.seconds = clock_seconds();
    log_.add(event);
  }

  FlightLog& log_;
  std::vector<Event> messages_;  ///< by slot of the request
};

}  // namespace

std::unique_ptr<Transport> record_flight(Transport& inner, FlightLog& log) {
  return std::make_unique<FlightRecorder>(inner, log);
}

}  // namespace plumbline::transport::flight
