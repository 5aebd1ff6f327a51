#include "runtime/transport/nccl/edges.h"

#include <utility>

#include "runtime/error.h"
#include "runtime/transport/collectives.h"
#include "runtime/transport/cuda/pinned_memory.h"

namespace plumbline::transport::nccl {
namespace {

constexpr auto kPatience = std::chrono::seconds(5);  // for the end of edges that are in order

std::string place(const Transport& control, const Edge& edge) {
  const std::string me = std::to_string(control.rank()), peer = std::to_string(edge.peer);
  return "rank " + me + ": NCCL, edge from rank " + (edge.sends ? me + " to rank " + peer : peer + " to rank " + me);
}

std::string in_brackets(const std::string& label, const std::string& words) {
  return words.empty() ? "" : " (" + label + words + ")";
}

}  // namespace

Edges::Edges(const Library& library, Transport& control, Watch& watch, Clock::duration timeout)
    : library_(library),
      control_(control),
      watch_(watch),
      timeout_(timeout),
      out_(control.size()),
      in_(control.size()) {}

Edges::~Edges() {
  const Deadline patience = Deadline::after(kPatience);
  for (auto* edges : {&out_, &in_})
    for (const std::unique_ptr<Edge>& edge : *edges) {
      if (edge == nullptr) continue;
      if (edge->communicator != nullptr) {
        Result state = library_.comm_finalize(edge->communicator);
        while (state == Result::InProgress && !patience.passed()) {
          std::this_thread::sleep_for(std::chrono::microseconds(100));
          if (library_.comm_get_async_error(edge->communicator, &state) != Result::Success) break;
        }
        if (state == Result::Success)
          library_.comm_destroy(edge->communicator);
        else
          library_.comm_abort(edge->communicator);
      }
      if (edge->stream != nullptr) library_.stream_destroy(edge->stream);
    }
}

void Edges::connect(const std::vector<schedule::RankLink>& links) {
  std::vector<schedule::RankLink> missing;
  for (const schedule::RankLink& link : links)
    if (links_.insert(link).second) missing.push_back(link);
  if (missing.empty()) return;
  try {
    for (const auto& round : schedule::channel_rounds(missing))
      for (const schedule::RankChannel& channel : round)
        if (channel.from == control_.rank() || channel.to == control_.rank()) make(channel);
    barrier(control_, Deadline::patient(timeout_));
  } catch (...) {
    abort();
    throw;
  }
}

void Edges::make(const schedule::RankChannel& channel) {
  const bool sends = channel.from == control_.rank();
  const int peer = sends ? channel.to : channel.from;
  std::unique_ptr<Edge>& edge = (sends ? out_ : in_)[peer];
  edge = std::make_unique<Edge>(Edge{peer, sends});
  cuda::check(library_, library_.stream_create_with_flags(&edge->stream, cuda::kStreamNonBlocking), "cudaStreamCreate");
  const UniqueId id = agree_on_id(channel);
  const std::string name = std::to_string(channel.from) + ">" + std::to_string(channel.to);
  Config config;
  config.blocking = 0;
  config.commName = name.c_str();
  settle(*edge, library_.comm_init_rank_config(&edge->communicator, 2, id, edge->rank(), &config),
         "ncclCommInitRankConfig");
  send_first_byte(*edge);
}

UniqueId Edges::agree_on_id(const schedule::RankChannel& channel) {
  UniqueId id;
  Request request;
  if (channel.from == control_.rank()) {
    if (const Result result = library_.get_unique_id(&id); result != Result::Success)
      throw Error("rank " + std::to_string(control_.rank()) +
                  ": ncclGetUniqueId: " + library_.get_error_string(result));
    request = control_.isend(&id, sizeof id, channel.to, kIdTag);
  } else {
    request = control_.irecv(&id, sizeof id, channel.from, kIdTag);
  }
  control_.wait(request, Deadline::patient(timeout_), "the id of an NCCL communicator");
  return id;
}

void Edges::send_first_byte(const Edge& edge) {
  const cuda::PinnedMemory byte(library_, 1);
  const Event done = cuda::make_event(library_);
  try {
    settle(edge,
           edge.sends ? library_.send(byte.get(), 1, DataType::Uint8, 1, edge.communicator, edge.stream)
                      : library_.recv(byte.get(), 1, DataType::Uint8, 0, edge.communicator, edge.stream),
           edge.sends ? "ncclSend" : "ncclRecv");
    cuda::check(library_, library_.event_record(done, edge.stream), "cudaEventRecord");
    const bool arrived = watch_.await(
        [&] {
          check(edge);
          return cuda::has_passed(library_, done);
        },
        Deadline::after(timeout_));
    if (!arrived)
      throw TimeoutError(place(control_, edge) + ": the first message did not arrive" + words_of_stub(edge));
  } catch (...) {
    abort();  // an operation may still use the byte, whose memory is about to be freed
    library_.event_destroy(done);
    throw;
  }
  library_.event_destroy(done);
}

Edge* Edges::find(int peer, bool sends) { return (sends ? out_ : in_)[peer].get(); }

void Edges::settle(const Edge& edge, Result result, const char* call) {
  if (result == Result::InProgress) {
    const bool taken = watch_.await(
        [&] {
          const Result asked = library_.comm_get_async_error(edge.communicator, &result);
          if (asked != Result::Success) result = asked;
          return result != Result::InProgress;
        },
        Deadline::after(timeout_));
    if (!taken) throw TimeoutError(place(control_, edge) + ": " + call + " is still in progress" + words_of_stub(edge));
  }
  if (result != Result::Success) fail(edge, result, call);
}

void Edges::check(const Edge& edge) const {
  Result state = Result::Success;
  const Result asked = library_.comm_get_async_error(edge.communicator, &state);
  if (asked != Result::Success) state = asked;
  if (state != Result::Success && state != Result::InProgress) fail(edge, state, "the communicator failed");
}

std::string Edges::words_of_stub(const Edge& edge) const {
  return library_.stub.empty() ? std::string() : in_brackets("", last_error(edge));
}

std::string Edges::last_error(const Edge& edge) const {
  const char* const words = edge.communicator == nullptr ? nullptr : library_.get_last_error(edge.communicator);
  return words == nullptr ? "" : words;
}

void Edges::fail(const Edge& edge, Result result, const char* call) const {
  throw Error(place(control_, edge) + ": " + call + ": " + library_.get_error_string(result) +
              in_brackets(library_.stub.empty() ? "NCCL's last warning in this process: " : "", last_error(edge)));
}

void Edges::abort() noexcept {
  aborted_ = true;
  for (auto* edges : {&out_, &in_})
    for (const std::unique_ptr<Edge>& edge : *edges)
      if (edge != nullptr && edge->communicator != nullptr)
        library_.comm_abort(std::exchange(edge->communicator, nullptr));
}

}  // namespace plumbline::transport::nccl
