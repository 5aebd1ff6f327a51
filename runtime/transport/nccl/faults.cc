#include "runtime/transport/nccl/faults.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "runtime/transport/arrival_transport.h"
#include "runtime/transport/forwarding_transport.h"

namespace plumbline::transport::nccl {
namespace {

/// A send that is held back until the next one on its communicator.
struct HeldSend {
  int seen = 0;
  std::vector<char> data;  // a copy, since its event happens before it is sent
};

struct BufferedReceive {
  void* to;
  const std::vector<std::byte>* from;
};

class PrivateReceiveBuffers : public ArrivalTransport<BufferedReceive> {
 public:
  using ArrivalTransport::ArrivalTransport;

  Request irecv(void* data, size_t bytes, int peer, int64_t tag) override {
    if (tag < 0 || bytes == 0) return inner_.irecv(data, bytes, peer, tag);
    std::vector<std::byte>& memory = memory_.emplace_back(bytes);
    return expect(inner_.irecv(memory.data(), bytes, peer, tag), {data, &memory});
  }

 private:
  void arrive(const BufferedReceive& receive) override {
    std::memcpy(receive.to, receive.from->data(), receive.from->size());
  }

  std::deque<std::vector<std::byte>> memory_;
};

class OverwrittenSends : public ForwardingTransport {
 public:
  OverwrittenSends(Transport& inner, Happened happened) : ForwardingTransport(inner), happened_(std::move(happened)) {}

  Request isend(const void* data, size_t bytes, int peer, int64_t tag) override {
    if (tag < 0 || bytes == 0) return inner_.isend(data, bytes, peer, tag);
    const auto* begin = static_cast<const std::byte*>(data);
    std::vector<std::byte>& freed = memory_.emplace_back(begin, begin + bytes);
    const Request request = inner_.isend(freed.data(), bytes, peer, tag);
    std::ranges::fill(freed, std::byte{0xff});
    happened_();
    return request;
  }

 private:
  Happened happened_;
  std::deque<std::vector<std::byte>> memory_;
};

}  // namespace

Library without_event_waits(Library library, Happened happened) {
  library.stream_wait_event = [happened = std::move(happened)](Stream, Event, unsigned int) {
    happened();
    return CudaError::Success;
  };
  return library;
}

Library with_one_stream(Library library, Happened happened) {
  struct Streams {
    int made = 0, users_of_shared = 0;
    Stream shared = Stream();
  };
  const auto streams = std::make_shared<Streams>();
  // The first stream that a rank makes is the transport's compute stream.
  library.stream_create_with_flags = [create = library.stream_create_with_flags, happened = std::move(happened),
                                      streams](Stream* stream, unsigned int flags) {
    const bool is_first = streams->made++ == 0;
    if (is_first || streams->users_of_shared == 0) {
      const CudaError result = create(stream, flags);
      if (!is_first && result == CudaError::Success) *streams = {streams->made, 1, *stream};
      return result;
    }
    happened();
    ++streams->users_of_shared;
    *stream = streams->shared;
    return CudaError::Success;
  };
  library.stream_destroy = [destroy = library.stream_destroy, streams](Stream stream) {
    const bool has_other_users = stream == streams->shared && --streams->users_of_shared > 0;
    return has_other_users ? CudaError::Success : destroy(stream);
  };
  return library;
}

Library with_short_receives(Library library, Happened happened) {
  library.recv = [recv = library.recv, happened = std::move(happened)](void* data, size_t count, DataType type,
                                                                       int peer, Communicator comm, Stream stream) {
    if (count <= 4) return recv(data, count, type, peer, comm, stream);
    happened();
    return recv(data, count - 4, type, peer, comm, stream);
  };
  return library;
}

Library with_swapped_sends(Library library, Happened happened) {
  library.send = [send = library.send, happened = std::move(happened), held = std::map<Communicator, HeldSend>()](
                     const void* data, size_t count, DataType type, int peer, Communicator comm,
                     Stream stream) mutable {
    HeldSend& other = held[comm];
    ++other.seen;
    if (other.seen == 2) {
      const auto* begin = static_cast<const char*>(data);
      other.data.assign(begin, begin + count);
      return Result::Success;
    }
    const Result result = send(data, count, type, peer, comm, stream);
    if (other.seen != 3) return result;
    happened();
    return send(other.data.data(), other.data.size(), type, peer, comm, stream);
  };
  return library;
}

std::unique_ptr<Transport> with_private_receive_buffers(Transport& inner, Happened) {
  return std::make_unique<PrivateReceiveBuffers>(inner);
}

std::unique_ptr<Transport> with_overwritten_sends(Transport& inner, Happened happened) {
  return std::make_unique<OverwrittenSends>(inner, std::move(happened));
}

}  // namespace plumbline::transport::nccl
