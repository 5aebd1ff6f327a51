// ForwardingTransport: forwards every call to another transport. A transport that observes or disturbs messages derives
// from this class and overrides the functions that differ.
#pragma once

#include <memory>
#include <string>

#include "runtime/transport/transport.h"

namespace plumbline::transport {

class ForwardingTransport : public Transport {
 public:
  /// `inner` must outlive this object.
  explicit ForwardingTransport(Transport& inner) : inner_(inner) {}

  int rank() const override { return inner_.rank(); }
  int size() const override { return inner_.size(); }
  int64_t max_tag() const override { return inner_.max_tag(); }
  std::unique_ptr<AgreedTraffic> agree_on_traffic(const Traffic& traffic, const Deadline& deadline) override {
    return inner_.agree_on_traffic(traffic, deadline);
  }
  void begin_traffic(AgreedTraffic* traffic) override { inner_.begin_traffic(traffic); }
  Request isend(const void* data, size_t bytes, int peer, int64_t tag) override {
    return inner_.isend(data, bytes, peer, tag);
  }
  Request irecv(void* data, size_t bytes, int peer, int64_t tag) override {
    return inner_.irecv(data, bytes, peer, tag);
  }
  bool has_message(int peer, int64_t tag) override { return inner_.has_message(peer, tag); }
  bool test(Request& request) override { return inner_.test(request); }
  void wait(Request& request, const Deadline& deadline, const WaitContext& context) override {
    inner_.wait(request, deadline, context);
  }
  void withdraw() noexcept override { inner_.withdraw(); }
  void abort(const std::string& reason) noexcept override { inner_.abort(reason); }

 protected:
  Transport& inner_;
};

}  // namespace plumbline::transport
