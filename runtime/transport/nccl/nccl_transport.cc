#include "runtime/transport/nccl/nccl_transport.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <optional>
#include <set>
#include <thread>
#include <utility>

#include "runtime/error.h"
#include "runtime/text/counted.h"
#include "runtime/transport/cuda/choose_device.h"
#include "runtime/transport/cuda/pinned_memory.h"
#include "runtime/transport/errors.h"
#include "runtime/transport/nccl/edges.h"
#include "runtime/transport/nccl/route.h"
#include "runtime/transport/slot_pool.h"
#include "runtime/transport/threads/mailbox.h"

namespace plumbline::transport::nccl {
namespace {

/// What precedes a message with NcclOptions::headers.
struct MessageHeader {
  int32_t tag;
  uint32_t number;  // of the message in the agreed order
  uint64_t bytes;
  bool operator==(const MessageHeader&) const = default;
};
static_assert(sizeof(MessageHeader) == 16);

/// An operation that was passed to NCCL. Reused, with its event and memory.
struct Issued {
  Edge* edge = nullptr;
  Event done = nullptr;
  cuda::PinnedMemory landing;  // in place of the caller's memory
  cuda::PinnedMemory header;
  MessageHeader expected = {};
};

/// What the caller started.
struct Requested {
  Request control;           // of a message that does not travel over NCCL
  Issued* issued = nullptr;  // of a message that does
  bool lands = false;        // the message of a receive is in issued->landing
  Transfer transfer = {};
};

/// Both directions, by peer.
struct NcclTraffic : AgreedTraffic {
  std::vector<Route> out, in;
  std::vector<std::vector<Issued*>> early;  // by peer and index: receives issued before they were posted
};

class NcclTransport final : public Transport {
 public:
  NcclTransport(Library library, Transport& control, const NcclOptions& options)
      : library_(std::move(library)),
        control_(control),
        options_(options),
        watch_(control),
        edges_(library_, control, watch_, options.timeout),
        compute_(options.compute) {
    if (compute_ == nullptr) {
      cuda::check(library_, library_.stream_create_with_flags(&own_compute_, cuda::kStreamNonBlocking),
                  "cudaStreamCreate");
      compute_ = own_compute_;
    }
    for (Event* event : {&before_, &after_}) *event = cuda::make_event(library_);
  }

  ~NcclTransport() override {
    withdraw();
    for (Issued& issued : all_) library_.event_destroy(issued.done);
    for (Event event : {before_, after_}) library_.event_destroy(event);
    if (own_compute_ != nullptr) library_.stream_destroy(own_compute_);
  }

  int rank() const override { return control_.rank(); }
  int size() const override { return control_.size(); }
  int64_t max_tag() const override { return control_.max_tag(); }

  std::unique_ptr<AgreedTraffic> agree_on_traffic(const Traffic& mine, const Deadline& deadline) override {
    require_edges();
    const std::vector<Traffic> of_rank = guarded([&] { return gather_traffic(control_, mine, deadline); });
    if (const std::string problem = contradiction(of_rank); !problem.empty())
      throw Error("the ranks disagree on a step's messages: " + problem);
    std::set<schedule::RankLink> links;
    auto traffic = std::make_unique<NcclTraffic>();
    std::vector<std::vector<Parcel>> out(size()), in(size());
    for (int from = 0; from < size(); ++from)
      for (const Parcel& send : of_rank[from].sends) {
        links.insert({std::min(from, send.peer), std::max(from, send.peer)});
        if (from == rank()) out[send.peer].push_back(send);
        if (send.peer == rank()) in[from].push_back(send);
      }
    for (int peer = 0; peer < size(); ++peer) {
      traffic->out.emplace_back(std::move(out[peer]));
      traffic->early.emplace_back(in[peer].size());
      traffic->in.emplace_back(std::move(in[peer]));
    }
    guarded([&] { edges_.connect({links.begin(), links.end()}); });
    return traffic;
  }

  void begin_traffic(AgreedTraffic* agreed) override {
    traffic_ = static_cast<NcclTraffic*>(agreed);
    if (traffic_ == nullptr) return;
    for (std::vector<Route>* routes : {&traffic_->out, &traffic_->in})
      for (Route& route : *routes) route.issued = 0;
  }

  Request isend(const void* data, size_t bytes, int peer, int64_t tag) override {
    check_operation(*this, Direction::Send, peer, tag);
    Route* const route = traffic_ == nullptr ? nullptr : &traffic_->out[peer];
    const std::optional<size_t> index = route == nullptr ? std::nullopt : route->find(tag);
    if (!index) return over_control(control_.isend(data, bytes, peer, tag));
    require_edges();
    const Transfer transfer{Direction::Send, const_cast<void*>(data), bytes, rank(), peer, tag};
    require_agreed(transfer, route->message(*index).bytes);
    if (*index != route->issued)
      throw Error(place(transfer) + " is message " + std::to_string(*index) + " of the agreed order, but " +
                  std::to_string(route->issued) + " were posted before it");
    ++route->issued;
    if (bytes == 0) return Request();
    return guarded([&] {
      Issued& issued = take(edges_.find(peer, /*sends=*/true));
      void* memory = transfer.memory;
      if (!is_usable(memory)) {
        memory = at_least(issued.landing, bytes);
        std::memcpy(memory, data, bytes);
      }
      issue(issued, memory, header_of(tag, *index, bytes), bytes);
      Request request;
      operations_.take(request) = {{}, &issued, false, transfer};
      return request;
    });
  }

  Request irecv(void* data, size_t bytes, int peer, int64_t tag) override {
    check_operation(*this, Direction::Receive, peer, tag);
    Route* const route = traffic_ == nullptr ? nullptr : &traffic_->in[peer];
    const std::optional<size_t> index = route == nullptr ? std::nullopt : route->find(tag);
    if (!index) return over_control(control_.irecv(data, bytes, peer, tag));
    require_edges();
    const Transfer transfer{Direction::Receive, data, bytes, peer, rank(), tag};
    require_agreed(transfer, route->message(*index).bytes);
    return guarded([&] {
      for (; route->issued < *index; ++route->issued)
        traffic_->early[peer][route->issued] = issue_receive(peer, route->issued, nullptr);
      Issued* issued = std::exchange(traffic_->early[peer][*index], nullptr);
      const bool early = issued != nullptr;
      if (!early && bytes > 0) {
        if (route->issued != *index) throw Error(place(transfer) + " is posted twice in a step");
        issued = issue_receive(peer, *index, is_usable(data) ? data : nullptr);
      }
      route->issued = std::max(route->issued, *index + 1);
      Request request;
      if (bytes > 0) operations_.take(request) = {{}, issued, early || !is_usable(data), transfer};
      return request;
    });
  }

  /// Of messages over the control transport: NCCL sends none before its receive is posted.
  bool has_message(int peer, int64_t tag) override {
    return guarded([&] { return control_.has_message(peer, tag); });
  }

  bool test(Request& request) override {
    if (request.empty()) return true;
    Requested& operation = operations_.at(request, rank());
    return guarded([&] {
      if (operation.issued == nullptr ? !control_.test(operation.control) : !has_ended(*operation.issued)) return false;
      finish(request, operation);
      return true;
    });
  }

  void wait(Request& request, const Deadline& deadline, const WaitContext& context) override {
    if (request.empty()) return;
    Requested& operation = operations_.at(request, rank());
    guarded([&] {
      if (operation.issued == nullptr)
        control_.wait(operation.control, deadline, context);
      else
        wait_for(operation, deadline, context);
      finish(request, operation);
    });
  }

  void withdraw() noexcept override {
    if (traffic_ != nullptr) abort_edges();
    traffic_ = nullptr;
    operations_.drain([](Requested&) {});
    control_.withdraw();
    watch_.withdrawn();
  }

  void abort(const std::string& reason) noexcept override {
    if (traffic_ != nullptr) abort_edges();
    traffic_ = nullptr;
    operations_.drain([](Requested&) {});
    control_.abort(reason);
    watch_.withdrawn();
  }

 private:
  Request over_control(Request control) {
    Request request;
    if (!control.empty()) operations_.take(request) = {control, nullptr, false, {}};
    return request;
  }

  void require_edges() const {
    if (edges_.aborted())
      throw Error("rank " + std::to_string(rank()) + ": its NCCL communicators were aborted after an error");
  }

  std::string place(const Transfer& transfer) const {
    const bool sends = transfer.direction == Direction::Send;
    return "rank " + std::to_string(rank()) + ": the message " + (sends ? "to rank " : "from rank ") +
           std::to_string(sends ? transfer.destination : transfer.source) + " with tag " + std::to_string(transfer.tag);
  }

  void require_agreed(const Transfer& transfer, size_t bytes) const {
    if (transfer.bytes != bytes)
      throw Error(place(transfer) + " has " + std::to_string(transfer.bytes) + " bytes, but " + std::to_string(bytes) +
                  " were agreed");
  }

  static MessageHeader header_of(int64_t tag, size_t number, size_t bytes) {
    return {static_cast<int32_t>(tag), static_cast<uint32_t>(number), bytes};
  }

  Issued& take(Edge* edge) {
    PLUMBLINE_CHECK(edge != nullptr, "no communicator was made for an edge of the traffic");
    if (free_.empty()) {
      all_.emplace_back();
      all_.back().done = cuda::make_event(library_);
      free_.push_back(&all_.back());
    }
    Issued& issued = *free_.back();
    free_.pop_back();
    issued.edge = edge;
    return issued;
  }

  Issued* issue_receive(int peer, size_t index, void* memory) {
    const Parcel& parcel = traffic_->in[peer].message(index);
    if (parcel.bytes == 0) return nullptr;
    Issued& issued = take(edges_.find(peer, /*sends=*/false));
    if (memory == nullptr) memory = at_least(issued.landing, parcel.bytes);
    issue(issued, memory, header_of(parcel.tag, index, parcel.bytes), parcel.bytes);
    return &issued;
  }

  /// A block that is too small is kept: freeing it in the middle of a step, CUDA may wait for kernels that run, among
  /// them NCCL's, which wait for other ranks.
  void* at_least(cuda::PinnedMemory& memory, size_t bytes) {
    if (memory.bytes() < bytes) {
      if (memory.get() != nullptr) outgrown_.push_back(std::move(memory));
      memory = cuda::PinnedMemory(library_, bytes);
    }
    return memory.get();
  }

  /// Behind the work that is on the compute stream.
  void issue(Issued& issued, void* memory, const MessageHeader& header, size_t bytes) {
    const Edge& edge = *issued.edge;
    cuda::check(library_, library_.event_record(before_, compute_), "cudaEventRecord");
    cuda::check(library_, library_.stream_wait_event(edge.stream, before_, 0), "cudaStreamWaitEvent");
    if (options_.headers) {
      issued.expected = header;
      void* const sent = at_least(issued.header, sizeof(MessageHeader));
      if (edge.sends) std::memcpy(sent, &header, sizeof header);
      pass(edge, sent, sizeof header);
    }
    pass(edge, memory, bytes);
    cuda::check(library_, library_.event_record(issued.done, edge.stream), "cudaEventRecord");
  }

  void pass(const Edge& edge, void* memory, size_t bytes) {
    if (edge.sends)
      edges_.settle(edge, library_.send(memory, bytes, DataType::Uint8, 1, edge.communicator, edge.stream), "ncclSend");
    else
      edges_.settle(edge, library_.recv(memory, bytes, DataType::Uint8, 0, edge.communicator, edge.stream), "ncclRecv");
  }

  bool has_ended(const Issued& issued) const {
    edges_.check(*issued.edge);
    return cuda::has_passed(library_, issued.done);
  }

  /// The memory of a send may be reused once its own event has happened. A receive is for the compute stream; with
  /// kernels on the host, the host waits for that stream.
  void wait_for(const Requested& operation, const Deadline& deadline, const WaitContext& context) {
    const Issued& issued = *operation.issued;
    Event event = issued.done;
    if (operation.transfer.direction == Direction::Receive) {
      cuda::check(library_, library_.stream_wait_event(compute_, issued.done, 0), "cudaStreamWaitEvent");
      cuda::check(library_, library_.event_record(after_, compute_), "cudaEventRecord");
      event = after_;
    }
    const auto done = [&] {
      edges_.check(*issued.edge);
      return cuda::has_passed(library_, event);
    };
    if (watch_.await(done, deadline)) return;
    const std::string words = edges_.words_of_stub(*issued.edge);
    throw_timeout(rank(), operation.transfer.direction, issued.edge->peer, deadline,
                  [&] { return context.text() + words; });
  }

  void finish(Request& request, Requested& operation) {
    if (operation.issued != nullptr) {
      Issued& issued = *operation.issued;
      if (options_.headers && !issued.edge->sends) compare_header(issued);
      if (operation.lands) land(operation.transfer, issued);
      free_.push_back(&issued);
    }
    operations_.give_back(request);
  }

  /// Whether NCCL can use the memory itself.
  bool is_usable(const void* memory) const {
    cuda::PointerAttributes attributes;
    return library_.pointer_get_attributes(&attributes, memory) == CudaError::Success &&
           attributes.type != cuda::MemoryType::Unregistered;
  }

  /// The host waits for it, since the landing is used again.
  void land(const Transfer& transfer, const Issued& issued) {
    if (!cuda::is_on_device(library_, transfer.memory)) {
      std::memcpy(transfer.memory, issued.landing.get(), transfer.bytes);
      return;
    }
    cuda::check(
        library_,
        library_.memcpy_async(transfer.memory, issued.landing.get(), transfer.bytes, cuda::CopyKind::Default, compute_),
        "cudaMemcpyAsync");
    cuda::check(library_, library_.event_record(after_, compute_), "cudaEventRecord");
    if (!watch_.await([&] { return cuda::has_passed(library_, after_); }, Deadline::after(options_.timeout)))
      throw TimeoutError(place(transfer) + " has arrived, but its copy to the device is still in progress");
  }

  void compare_header(const Issued& issued) const {
    MessageHeader arrived;
    std::memcpy(&arrived, issued.header.get(), sizeof arrived);
    if (arrived == issued.expected) return;
    const auto text = [](const MessageHeader& header) {
      return "message " + std::to_string(header.number) + " with tag " + std::to_string(header.tag) + " and " +
             std::to_string(header.bytes) + " bytes";
    };
    throw Error("rank " + std::to_string(rank()) + ": from rank " + std::to_string(issued.edge->peer) + " came " +
                text(arrived) + ", expected " + text(issued.expected));
  }

  /// Afterwards NCCL does not access memory of operations any more.
  void abort_edges() noexcept {
    edges_.abort();
    const Deadline patience = Deadline::after(std::chrono::seconds(5));
    for (const Issued& issued : all_)
      while (library_.event_query(issued.done) == CudaError::NotReady && !patience.passed())
        std::this_thread::sleep_for(std::chrono::microseconds(100));
  }

  const Library library_;
  Transport& control_;
  const NcclOptions options_;
  Watch watch_;
  Edges edges_;
  Stream compute_;
  Stream own_compute_ = nullptr;              // null: the caller's
  Event before_ = nullptr, after_ = nullptr;  // of the compute stream: before an operation, after a receive
  std::deque<Issued> all_;
  std::vector<Issued*> free_;
  std::vector<cuda::PinnedMemory> outgrown_;
  SlotPool<Requested> operations_;
  NcclTraffic* traffic_ = nullptr;
};

/// Why NCCL does not let the ranks of this machine share its devices; empty if it does, or they need not.
std::string why_not_shared(const Library& library, const cuda::DeviceOfRank& chosen) {
  constexpr int kSharesDevices = 23000;
  const char* const shared = std::getenv("NCCL_MULTI_RANK_GPU_ENABLE");
  if (chosen.ranks <= chosen.devices || std::getenv("NCCL_HOSTID") != nullptr ||
      (library.version >= kSharesDevices && shared != nullptr && std::string(shared) == "1"))
    return {};
  return "--transport nccl: " + std::to_string(chosen.ranks) + " ranks on a machine with " +
         counted(chosen.devices, "device") + " need NCCL 2.30 or newer and NCCL_MULTI_RANK_GPU_ENABLE=1; this is " +
         library.name() +
         ". If each rank has a device of its own, let all ranks see all devices (CUDA_VISIBLE_DEVICES)";
}

}  // namespace

std::unique_ptr<Transport> make_nccl_transport(Library library, Transport& control, const NcclOptions& options) {
  const cuda::DeviceOfRank chosen =
      cuda::choose_device(library, control, Deadline::patient(options.timeout), "--transport nccl");
  const std::string problem = why_not_shared(library, chosen);
  if (!problem.empty()) throw Error(problem);
  return std::make_unique<NcclTransport>(std::move(library), control, options);
}

}  // namespace plumbline::transport::nccl
