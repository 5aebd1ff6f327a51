// A communicator of the stub (modes.h) between two ranks, each of which holds an object of this class.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "runtime/transport/nccl/abi.h"
#include "runtime/transport/nccl/stub/message.h"
#include "runtime/transport/nccl/stub/stream.h"

namespace plumbline::transport::nccl::stub {

class StubCommunicator : public std::enable_shared_from_this<StubCommunicator> {
 public:
  /// `name` is that of the shared memory.
  StubCommunicator(std::string name, int rank, bool blocking)
      : name_(std::move(name)), rank_(rank), blocking_(blocking) {}
  ~StubCommunicator();

  /// Waits for the other rank's begin(); a communicator that does not block leaves the wait to a thread of its own.
  Result begin();

  /// In a communicator that does not block, only state() and abort() put an operation onto its stream: NCCL's own
  /// threads may do so at any time before that.
  Result post(Message message, int peer, std::shared_ptr<StreamQueue> stream);

  /// From now on the communicator is in progress until all its operations have ended.
  Result finalize();
  /// Success, InProgress, or the error.
  Result state();
  /// The error, or else what both ranks are waiting for; valid until the next call.
  const char* last_error();
  /// Lets the operations on streams end without their messages.
  void abort();

 private:
  Result meet();
  void enqueue(const Message& message, const std::shared_ptr<StreamQueue>& stream, bool poisoned);
  void finish(const Message& message);
  void show_next(bool sends);

  struct Waiting {
    uint64_t number, bytes;
    int stream;
    std::string behind;
  };

  const std::string name_;
  const int rank_;
  const bool blocking_;
  SharedLanes* lanes_ = nullptr;

  std::mutex mutex_;  // guards the rest
  Result meeting_ = Result::InProgress;
  bool aborted_ = false, finalized_ = false;
  std::string error_;
  uint64_t posted_[2] = {};         // receives, sends
  std::deque<Waiting> waiting_[2];  // likewise: on streams, from the one that runs
  std::vector<std::function<void()>> deferred_;
};

}  // namespace plumbline::transport::nccl::stub
