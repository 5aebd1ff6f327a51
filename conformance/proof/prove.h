// prove(): is the pipelined run of a case the same computation as the unsplit model's, term by term? (docs/proof.md)
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/backend/fault.h"
#include "conformance/proof/claim.h"
#include "conformance/proof/executions/observed_rank.h"
#include "conformance/proof/sums/difference.h"
#include "runtime/engine/stage/recompute_options.h"
#include "runtime/engine/stage/remat_options.h"
#include "runtime/schedule/schedule.h"

namespace plumbline::proof {

struct ProofOptions {
  schedule::Schedule schedule;
  uint64_t seed = 1;
  Claim claim = Claim::SameComputation;
  engine::RecomputeOptions recompute = {};
  engine::RematOptions remat = {};
  /// Constructs the fault of each rank; empty: none.
  std::function<conformance::Fault(const conformance::FaultSite&)> fault = {};
  transport::Clock::duration timeout = std::chrono::seconds(60);  ///< the longest wait for one message
  /// On hollow tensors (shapes/): nothing is computed, and nothing takes memory, whatever its size. The case's model
  /// and batches must be hollow.
  bool on_shapes = false;
  /// Values between stages are compared too, which needs a model that the detached stages can cut. Ignored on shapes.
  bool boundaries = true;
  /// Called with all terms, the expected results, and those that each rank delivered; not if the engine stopped.
  std::function<void(const Terms& terms, const ResultTerms& expected, const std::vector<RankTerms>& found)> examine =
      {};
};

enum class Outcome {
  Proven,
  Refuted,  ///< a result is not as claimed, or an operator was executed too often
  Stopped,  ///< the engine stopped with an error, so that there are no results
};

/// "proven", "refuted", "stopped"
std::string_view outcome_name(Outcome outcome);

/// What a proof found, with all that a certificate says of it.
struct Proof {
  Outcome outcome = Outcome::Proven;
  std::string why;                     ///< one line; empty if proven
  std::vector<Difference> differ;      ///< all results whose terms differ, in the order in which a run produces them
  ResultTerms results;                 ///< the expected terms
  Log log;                             ///< of all ranks of the engine
  size_t terms = 0;                    ///< the number of different terms in both runs
  std::vector<std::string> constants;  ///< types of the constants (memory.h) on which results depend, sorted
  /// Whether operators were counted, so that those executed too often would have refuted. They are not with
  /// recomputation, and not if something else has refuted already.
  bool counted = false;
  int64_t happened = 0;  ///< the number of changes that the fault made
};

/// "PROVEN NAME: 40 results", "REFUTED NAME: why"; a proof of the same sum also counts the results in another order.
std::string line_of(const Proof& proof, const std::string& name);

/// Runs the case on the engine with one thread for each rank, then unsplit, and for the values between stages as
/// detached stages. Throws InputError, with the reason, for a case that a proof does not take (why_not_provable()).
Proof prove(const reference::Case& c, const ProofOptions& options);

/// Why no proof takes the case, in one line; empty if one does.
std::string why_not_provable(const reference::Case& c);

}  // namespace plumbline::proof
