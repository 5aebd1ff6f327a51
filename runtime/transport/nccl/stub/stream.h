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

/// A flag that is set once and stays set: what an event records. Thread-safe, except for changes of `on_query`.
class Signal {
 public:
  void set();
  bool is_set() const;
  /// Blocks until the signal is set.
  void wait() const;
  /// The host's query: returns whether the signal is set, and calls `on_query` if it is not.
  bool query() const;

  std::function<void()> on_query = {};  ///< must not change once another thread has the signal

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  bool set_ = false;
};

/// Thread-safe.
class StreamQueue : public std::enable_shared_from_this<StreamQueue> {
 public:
  /// Starts a queue and its thread, which is detached and keeps the queue alive until close() was called and all tasks
  /// have ended.
  static std::shared_ptr<StreamQueue> start();

  /// The number of this queue among those of the process, from 0.
  int number() const { return number_; }

  struct Task {
    std::function<void()> run;  ///< on the queue's thread; may block
    /// Called when the host queries an event behind this task before the event is reached: on the querying thread, at
    /// any time from the task's push on, and as often as the host queries.
    std::function<void()> on_query = {};
    std::string what = {};  ///< a description for the messages of tasks behind this one; empty: none
  };

  /// Appends a task. Must not follow close().
  void push(Task task);
  /// Returns the description of the last task that has one and has not ended; empty if there is none.
  std::string last_task() const;
  /// Returns a signal that is set when all tasks pushed so far have ended; its query() calls their on_query.
  std::shared_ptr<Signal> record();
  /// Ends the thread once all tasks have ended. Does not wait for them.
  void close();

 private:
  explicit StreamQueue(int number) : number_(number) {}
  void run();
  /// Calls on_query of the tasks that have not ended among the first `tasks` ones that were ever pushed.
  void notify_query(uint64_t tasks);

  const int number_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Task> tasks_;  // those that have not ended; the first one may be running
  uint64_t ended_ = 0;      // the number of tasks that have ended
  bool closed_ = false;
};

}  // namespace plumbline::transport::nccl::stub
