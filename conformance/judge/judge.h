// The judge: holds what a backend delivered against the oracles, and the oracles against each other.
//
// Every case is computed twice here, by the detached stages and by the whole model under plain autograd. The detached
// run has every boundary, so it can say where a difference begins; the whole model is never captured or cut, so it can
// say whether the detached run is right. Backends only deliver; nobody compares his own results.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "conformance/judge/finding.h"
#include "conformance/protocol/protocol.h"
#include "reference/case.h"
#include "runtime/schedule/schedule.h"
#include "runtime/tensor_file.h"

namespace plumbline::conformance {

struct Expectation;

class Judge {
 public:
  explicit Judge(uint64_t seed) : seed_(seed) {}

  /// Judges the results of a case under one schedule, which says into how many stages its model is cut. What an oracle
  /// has to say is computed once for each order of accumulation. Of `results` only the kinds in `delivers` are compared
  /// (none: all), and they must be complete.
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
