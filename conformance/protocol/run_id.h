// The identity of a run in plans, records, verdicts and reports. A report covers one backend, so the identity does not
// include it. No torch.
#pragma once

#include <compare>
#include <string>

namespace plumbline::conformance {

struct RunId {
  std::string case_id = {};    ///< the id of a case, or the name of a backend's custom model
  std::string schedule = {};   ///< a name, or the path of a CSV file
  int ranks = 0;               ///< 0: unknown
  std::string transport = {};  ///< transport_name(); empty: unknown

  auto operator<=>(const RunId&) const = default;
};

/// "4 ranks, mpi". Omits unknown parts; empty if both are unknown.
std::string place_of(const RunId& run);

/// "exact-mlp x 1f1b (4 ranks, mpi)"
std::string to_string(const RunId& run);

}  // namespace plumbline::conformance
