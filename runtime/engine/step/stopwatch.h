// The times of a step.
#pragma once

#include <chrono>

#include "runtime/transport/transport.h"

namespace plumbline::engine {

/// The current time in seconds on the steady clock.
inline double now() { return std::chrono::duration<double>(transport::Clock::now().time_since_epoch()).count(); }

/// Adds the seconds between its construction and destruction to `sum`, which must outlive it.
class Stopwatch {
 public:
  explicit Stopwatch(double& sum) : sum_(sum), begin_(now()) {}
  ~Stopwatch() { sum_ += now() - begin_; }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

 private:
  double& sum_;
  double begin_;
};

}  // namespace plumbline::engine
