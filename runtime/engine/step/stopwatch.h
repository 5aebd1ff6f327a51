// The times of a step.
#pragma once

#include "runtime/clock.h"

namespace plumbline::engine {

/// Adds the seconds between its construction and destruction to `sum`, which must outlive it.
class Stopwatch {
 public:
  explicit Stopwatch(double& sum) : sum_(sum), begin_(clock_seconds()) {}
  ~Stopwatch() { sum_ += clock_seconds() - begin_; }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

 private:
  double& sum_;
  double begin_;
};

}  // namespace plumbline::engine
