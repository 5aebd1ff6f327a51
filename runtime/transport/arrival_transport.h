// ArrivalTransport: forwards to another transport, and calls its derived class when an operation is complete.
#pragma once

#include <cstdint>
#include <map>
#include <utility>

#include "runtime/transport/forwarding_transport.h"

namespace plumbline::transport {

/// `Arriving` is the derived class's record of an operation in progress. The irecv() (or isend()) of the derived class
/// passes the new request and its record to expect(), which calls arrive() with the record at once if the operation is
/// complete; otherwise a successful test() or wait() does.
template <class Arriving>
class ArrivalTransport : public ForwardingTransport {
 public:
  using ForwardingTransport::ForwardingTransport;

  bool test(Request& request) override {
    const Key key = key_of(request);
    if (!inner_.test(request)) return false;
    arrive_if_expected(key);
    return true;
  }

  void wait(Request& request, const Deadline& deadline, const WaitContext& context) override {
    const Key key = key_of(request);
    inner_.wait(request, deadline, context);
    arrive_if_expected(key);
  }

  void withdraw() noexcept override {
    arriving_.clear();
    inner_.withdraw();
  }

 protected:
  virtual void arrive(const Arriving& arriving) = 0;

  Request expect(Request request, const Arriving& arriving) {
    if (request.empty())
      arrive(arriving);
    else
      arriving_.insert_or_assign(key_of(request), arriving);
    return request;
  }

 private:
  using Key = std::pair<uint32_t, uint32_t>;  // slot and generation

  static Key key_of(const Request& request) { return {request.slot(), request.generation()}; }

  void arrive_if_expected(const Key& key) {
    if (const auto expected = arriving_.extract(key)) arrive(expected.mapped());
  }

  std::map<Key, Arriving> arriving_;
};

}  // namespace plumbline::transport
