// The judge compares a backend's results with the oracles, and the oracles with each other.
//
// It computes every case twice: by the detached stages and by the whole model under plain autograd. The detached run
// has every boundary value, so it shows where a difference begins. The whole model is never captured or cut, so it
// shows whether the detached run is right. Backends only deliver results; they never judge them.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "conformance/judge/finding.h"
#include "conformance/protocol/protocol.h"
#include "reference/case.h"
#include "runtime/io/tensor_file.h"
#include "runtime/schedule/schedule.h"

namespace plumbline::conformance {

struct Expectation;

class Judge {
 public:
  explicit Judge(uint64_t seed) : seed_(seed) {}

  /// Judges the results of a case under one schedule, which determines the number of stages. Each oracle runs once for
  /// each order of accumulation. Compares only the kinds of `results` in `delivers` (none: all), which must be
  /// complete.
  Finding judge(const reference::Case& c, const schedule::Schedule& schedule, const TensorMap& results,
                const std::vector<reference::ResultKind>& delivers = {});

 private:
  struct Oracle;
  struct Whole;
  const Oracle& oracle_for(const reference::Case& c, const schedule::Schedule& schedule);
  Whole& whole_for(const reference::Case& c);
  const Expectation& bounded_for(const reference::Case& c);
  const TensorMap& by_microbatch_for(const reference::Case& c, int stages);

  uint64_t seed_;
  std::map<std::string, std::shared_ptr<const Oracle>> oracles_;
  std::map<std::string, std::shared_ptr<Whole>> wholes_;
};

/// Real numbers are held to the same bits only if the backend keeps the schedule's order and computes with our
/// LibTorch; else a same-order case is judged as bounded, and `note` says so. Returns whether it is.
bool demote(reference::Case& c, const BackendDescription& backend, std::string& note);

}  // namespace plumbline::conformance
