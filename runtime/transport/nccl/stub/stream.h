// A stream of the stub: a queue of tasks that one thread runs, each after the one before has ended.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

namespace plumbline::transport::nccl::stub {

/// Set once; what an event records.
class Signal {
 public:
  void set();
  bool is_set() const;
  void wait() const;
  /// The host asks whether it is set; calls `on_ask` unless it is.
  bool ask() const;

  std::function<void()> on_ask = {};  ///< not changed once others know of the signal

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  bool set_ = false;
};

class StreamQueue : public std::enable_shared_from_this<StreamQueue> {
 public:
  /// Starts the thread, which keeps the queue alive until close() and the end of all tasks.
  static std::shared_ptr<StreamQueue> start();

  /// Counts the streams of the process, from 0.
  int number() const { return number_; }

  struct Task {
    std::function<void()> run;
    std::function<void()> on_ask = {};  // the host asks for something behind it
    std::string what = {};              // describes it to those that are queued behind it
  };

  void push(Task task);
  /// The last task with a description that has not ended; empty if there is none.
  std::string last_task() const;
  /// Everything pushed so far has ended when the signal is set.
  std::shared_ptr<Signal> record();
  void close();

 private:
  explicit StreamQueue(int number) : number_(number) {}
  void run();
  /// Asks for the first tasks of all that were ever pushed.
  void ask_up_to(uint64_t tasks);

  const int number_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Task> tasks_;  // the first one may be running
  uint64_t ended_ = 0;      // tasks that are not in the deque any more
  bool closed_ = false;
};

}  // namespace plumbline::transport::nccl::stub
