#include <exception>
#include <mutex>
#include <string>
#include <thread>

#include "runtime/error.h"
#include "runtime/transport/threads/threads.h"

namespace plumbline::transport {
namespace {

/// The exception that explains why the ranks ended: the first one, but a PeerError only if there is no other.
class FirstFailure {
 public:
  void record(int rank, std::exception_ptr error, bool is_echo) {
    std::lock_guard lock(mutex_);
    if (error_ != nullptr && !(is_echo_ && !is_echo)) return;
    error_ = std::move(error);
    is_echo_ = is_echo;
    who_ = "rank " + std::to_string(rank);
  }

  void rethrow() const {
    if (error_ == nullptr) return;
    try {
      std::rethrow_exception(error_);
    } catch (const PeerError&) {
      throw;
    } catch (const InputError& error) {
      throw InputError(with_rank(error));
    } catch (const TimeoutError& error) {
      throw TimeoutError(with_rank(error));
    } catch (const std::exception& error) {
      throw Error(with_rank(error));
    } catch (...) {
      throw Error(who_ + ": an exception that is not a std::exception");
    }
  }

 private:
  std::string with_rank(const std::exception& error) const {
    const std::string text = error.what();
    return text.starts_with(who_ + ": ") || text.starts_with(who_ + ", ") ? text : who_ + ": " + text;
  }

  std::mutex mutex_;
  std::exception_ptr error_;
  bool is_echo_ = false;
  std::string who_;
};

void run_one(Transport& transport, const std::function<void(Transport&)>& body, FirstFailure& failure) {
  // Recorded before the abort: the PeerErrors that it causes must come second.
  try {
    body(transport);
  } catch (const PeerError&) {
    failure.record(transport.rank(), std::current_exception(), true);
    transport.abort("stopped by another rank");
  } catch (const std::exception& error) {
    failure.record(transport.rank(), std::current_exception(), false);
    transport.abort(error.what());
  } catch (...) {
    failure.record(transport.rank(), std::current_exception(), false);
    transport.abort("an exception that is not a std::exception");
  }
}

}  // namespace

void run_thread_ranks(int ranks, const std::function<void(Transport&)>& body, cuda::DeviceCopies* copies) {
  std::vector<std::unique_ptr<Transport>> transports = make_thread_transports(ranks, copies);
  FirstFailure failure;
  {
    std::vector<std::jthread> threads;
    for (auto& transport : transports) {
      try {
        threads.emplace_back([&transport, &body, &failure] { run_one(*transport, body, failure); });
      } catch (const std::exception& error) {
        // The ranks that have started would wait for this one.
        const std::string reason = std::string("its thread cannot be started: ") + error.what();
        failure.record(transport->rank(), std::make_exception_ptr(Error(reason)), false);
        transport->abort(reason);
        break;
      }
    }
  }
  failure.rethrow();
}

}  // namespace plumbline::transport
