// A stream of the stub: a queue of tasks that one thread runs, each after the one before has ended.
#pragma once

#include <condition_variable>
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

  /// `what` describes the task to those that are queued behind it.
  void push(std::function<void()> task, std::string what = {});
  /// The last task with a description that has not ended; empty if there is none.
  std::string last_task() const;
  /// Everything pushed so far has ended when the signal is set.
  std::shared_ptr<Signal> record();
  void close();

 private:
  struct Task {
    std::function<void()> run;
    std::string what;
  };

  explicit StreamQueue(int number) : number_(number) {}
  void run();

  const int number_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Task> tasks_;  // the first one may be running
  bool closed_ = false;
};

}  // namespace plumbline::transport::nccl::stub
