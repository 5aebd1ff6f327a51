// A receive is passed to MPI only after its message has arrived: a matched probe finds the message, its size is
// compared, and only then is it received, directly into the caller's memory. The reason is safety: for messages past
// the eager limit Open MPI (seen in 4.1.4, over shared memory and over TCP) writes a message that is longer than its
// receive buffer past the buffer's end before it reports the truncation. It also means that a receive can be withdrawn
// without MPI_Cancel. The cost is one copy of messages below the eager limit; larger ones wait at the sender until they
// are matched in any case.
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>
#include <memory>
#include <string>

#include "runtime/error.h"
#include "runtime/transport/errors.h"
#include "runtime/transport/machine/own_cores.h"
#include "runtime/transport/mpi/mpi.h"
#include "runtime/transport/mpi/mpi_common.h"
#include "runtime/transport/polling.h"
#include "runtime/transport/slot_pool.h"
#include "runtime/transport/threads/mailbox.h"

namespace plumbline::transport {
namespace {

/// In the mailbox: a receive that has no message yet, or a message that has no receive yet (as a send).
struct MpiOperation : PostedOperation {
  MPI_Request request = MPI_REQUEST_NULL;  // of sends, and of receives that have their message
  MPI_Message message = MPI_MESSAGE_NULL;  // of messages
  Request handle;                          // of messages: their slot
  std::unique_ptr<std::byte[]> refused;    // receives a message of the wrong size, so that its sender can continue
};

/// A datatype of `bytes` bytes: blocks of `block` and the rest. Its caller frees it.
MPI_Datatype wide_datatype(size_t bytes, int block) {
  MPI_Datatype block_type;
  check_mpi(MPI_Type_contiguous(block, MPI_BYTE, &block_type), "MPI_Type_contiguous");
  const size_t blocks = bytes / block;
  if (blocks > static_cast<size_t>(std::numeric_limits<int>::max()))
    throw Error("a message of " + std::to_string(bytes) + " bytes is too large for MPI");
  const int lengths[] = {static_cast<int>(blocks), static_cast<int>(bytes % block)};
  const MPI_Aint places[] = {0, static_cast<MPI_Aint>(blocks * block)};
  const MPI_Datatype types[] = {block_type, MPI_BYTE};
  MPI_Datatype wide;
  check_mpi(MPI_Type_create_struct(2, lengths, places, types, &wide), "MPI_Type_create_struct");
  check_mpi(MPI_Type_commit(&wide), "MPI_Type_commit");
  MPI_Type_free(&block_type);
  return wide;
}

/// How long a rank polls, by the ranks on this host and the cores on which any of them may run.
Clock::duration polling_on_this_host(MPI_Comm comm) {
  MPI_Comm host;
  check_mpi(MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host), "MPI_Comm_split_type");
  int ranks = 0;
  MPI_Comm_size(host, &ranks);
  std::array<unsigned char, CPU_SETSIZE> usable = {};
  for (const int core : own_cores()) usable[core] = 1;
  check_mpi(MPI_Allreduce(MPI_IN_PLACE, usable.data(), CPU_SETSIZE, MPI_UNSIGNED_CHAR, MPI_MAX, host), "MPI_Allreduce");
  MPI_Comm_free(&host);
  const auto cores = std::ranges::count(usable, 1);  // none where the kernel's sets of cores are larger than ours
  return polling_time(ranks, cores > 0 ? cores : sysconf(_SC_NPROCESSORS_ONLN));
}

class MpiTransport final : public Transport {
 public:
  MpiTransport(MPI_Comm comm, int largest_plain_message) : comm_(comm), largest_plain_(largest_plain_message) {
    MPI_Comm_rank(comm_, &rank_);
    MPI_Comm_size(comm_, &size_);
    void* bound = nullptr;
    int found = 0;
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &bound, &found);
    // MPI guarantees at least 32767.
    max_tag_ = (found ? *static_cast<int*>(bound) : 32767) - kReservedTags;
    sleep_precisely();
    polling_ = polling_on_this_host(comm_);
  }

  ~MpiTransport() override {
    withdraw();
    MPI_Comm_free(&comm_);
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  int64_t max_tag() const override { return max_tag_; }

  Request isend(const void* data, size_t bytes, int peer, int64_t tag) override {
    check_operation(*this, Direction::Send, peer, tag);
    Request request;
    MpiOperation& send = begin(request, {Direction::Send, const_cast<void*>(data), bytes, rank_, peer, tag});
    const int code = with_datatype(bytes, [&](int count, MPI_Datatype datatype) {
      return MPI_Isend(data, count, datatype, peer, to_mpi(tag), comm_, &send.request);
    });
    check_call(code, "MPI_Isend");
    return request;
  }

  Request irecv(void* data, size_t bytes, int peer, int64_t tag) override {
    check_operation(*this, Direction::Receive, peer, tag);
    Request request;
    MpiOperation& receive = begin(request, {Direction::Receive, data, bytes, peer, rank_, tag});
    if (PostedOperation* waiting = mailbox_.take(Direction::Send, peer, tag)) {
      MpiOperation& arrival = static_cast<MpiOperation&>(*waiting);
      start_receive(receive, arrival.message, arrival.bytes);
      Request handle = arrival.handle;
      arrivals_.give_back(handle);
    } else {
      mailbox_.post(receive);
    }
    return request;
  }

  bool has_message(int peer, int64_t tag) override {
    check_operation(*this, Direction::Receive, peer, tag);
    take_arrivals();
    return mailbox_.find(Direction::Send, peer, tag) != nullptr;
  }

  bool test(Request& request) override {
    if (request.empty()) return true;
    MpiOperation& operation = pool_.at(request, rank_);
    if (!poll(operation)) return false;
    finish(request, operation);
    return true;
  }

  void wait(Request& request, const Deadline& deadline, const WaitContext& context) override {
    if (request.empty()) return;
    MpiOperation& operation = pool_.at(request, rank_);
    MpiPause pause(polling_);
    while (!poll(operation)) {
      if (!pause.next() || !deadline.passed()) continue;
      const Direction direction = operation.direction;
      const int peer = direction == Direction::Send ? operation.destination : operation.source;
      withdraw();
      throw_timeout(rank_, direction, peer, deadline, context);
    }
    finish(request, operation);
  }

  void withdraw() noexcept override {
    pool_.drain([this](MpiOperation& operation) {
      if (operation.posted) return mailbox_.remove(operation);
      // A send cannot be withdrawn. A receive that has its message ends soon, unless its sender died half-way.
      const bool is_receive = operation.direction == Direction::Receive;
      const Deadline deadline = Deadline::after(std::chrono::seconds(is_receive ? 1 : 0));
      int done = 0;
      MpiPause pause;
      while (MPI_Test(&operation.request, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS && !done) {
        if (!is_receive || (pause.next() && deadline.passed())) break;
      }
      if (operation.request != MPI_REQUEST_NULL) MPI_Request_free(&operation.request);
      if (done) operation.refused.reset();
    });
  }

  void abort(const std::string& reason) noexcept override { abort_mpi_job(rank_, reason); }

 private:
  // Reserved tags lie above the users': -1 is the one after max_tag_, and so on.
  int to_mpi(int64_t tag) const { return static_cast<int>(tag >= 0 ? tag : max_tag_ - tag); }
  int64_t from_mpi(int tag) const { return tag <= max_tag_ ? tag : max_tag_ - tag; }

  /// Calls `f` with the count and datatype that describe `bytes` bytes.
  template <typename F>
  int with_datatype(size_t bytes, const F& f) {
    if (bytes <= static_cast<size_t>(largest_plain_)) return f(static_cast<int>(bytes), MPI_BYTE);
    MPI_Datatype datatype = wide_datatype(bytes, std::min(largest_plain_, 1 << 30));
    const int code = f(1, datatype);
    MPI_Type_free(&datatype);  // takes effect once the operation is complete
    return code;
  }

  MpiOperation& begin(Request& request, const Transfer& transfer) {
    MpiOperation& operation = pool_.take(request);
    operation.begin(transfer);
    operation.request = MPI_REQUEST_NULL;
    return operation;
  }

  void start_receive(MpiOperation& receive, MPI_Message message, size_t arrived) {
    receive.arrived = arrived;
    void* memory = receive.memory;
    if (arrived != receive.bytes) {
      receive.refused.reset(new std::byte[arrived]);
      memory = receive.refused.get();
    }
    check_call(with_datatype(arrived,
                             [&](int count, MPI_Datatype datatype) {
                               return MPI_Imrecv(memory, count, datatype, &message, &receive.request);
                             }),
               "MPI_Imrecv");
  }

  /// Matches every arrived message with its receive, or puts it into the mailbox. Progresses all operations of the
  /// rank.
  void take_arrivals() {
    for (;;) {
      int found = 0;
      MPI_Message message;
      MPI_Status status;
      check_call(MPI_Improbe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm_, &found, &message, &status), "MPI_Improbe");
      if (!found) return;
      MPI_Count bytes = 0;
      MPI_Get_elements_x(&status, MPI_BYTE, &bytes);
      const int64_t tag = from_mpi(status.MPI_TAG);
      if (PostedOperation* receive = mailbox_.take(Direction::Receive, status.MPI_SOURCE, tag)) {
        start_receive(static_cast<MpiOperation&>(*receive), message, bytes);
        continue;
      }
      Request handle;
      MpiOperation& arrival = arrivals_.take(handle);
      arrival.begin({Direction::Send, nullptr, static_cast<size_t>(bytes), status.MPI_SOURCE, rank_, tag});
      arrival.message = message;
      arrival.handle = handle;
      mailbox_.post(arrival);
    }
  }

  /// Whether the operation is complete. Also matches arrivals, since a peer may block until its message is received.
  bool poll(MpiOperation& operation) {
    if (operation.posted) take_arrivals();
    if (operation.posted) return false;
    int done = 0;
    check_call(MPI_Test(&operation.request, &done, MPI_STATUS_IGNORE), "MPI_Test");
    if (!done) take_arrivals();
    return done;
  }

  void finish(Request& request, MpiOperation& operation) {
    if (operation.direction == Direction::Receive && operation.arrived != operation.bytes) {
      const int source = operation.source;
      const int64_t tag = operation.tag;
      const size_t expected = operation.bytes;
      const size_t arrived = operation.arrived;
      withdraw();
      throw_wrong_size(rank_, source, tag, expected, arrived);
    }
    pool_.give_back(request);
  }

  /// Throws Error unless `code` is MPI_SUCCESS, after withdrawing, as every error of a wait does.
  void check_call(int code, const char* call) {
    if (code == MPI_SUCCESS) [[likely]]
      return;
    withdraw();
    throw Error("rank " + std::to_string(rank_) + ": " + call + ": " + mpi_error_text(code));
  }

  MPI_Comm comm_;
  int largest_plain_;
  int rank_ = 0;
  int size_ = 0;
  int64_t max_tag_ = 0;
  Clock::duration polling_{};        // before a wait sleeps
  SlotPool<MpiOperation> pool_;      // this rank's operations
  SlotPool<MpiOperation> arrivals_;  // messages without a receive
  Mailbox mailbox_;
};

}  // namespace

std::unique_ptr<Transport> make_mpi_transport(MpiSession& session, const MpiTransportOptions& options) {
  const int ranks = options.ranks == 0 ? session.size() : options.ranks;
  if (ranks < 1 || ranks > session.size()) {
    throw Error(std::to_string(ranks) + " ranks asked for, the MPI job has " + std::to_string(session.size()));
  }
  MPI_Comm comm;
  check_mpi(MPI_Comm_split(MPI_COMM_WORLD, session.rank() < ranks ? 0 : MPI_UNDEFINED, session.rank(), &comm),
            "MPI_Comm_split");
  if (comm == MPI_COMM_NULL) return nullptr;
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  return std::make_unique<MpiTransport>(comm, options.largest_plain_message);
}

}  // namespace plumbline::transport
