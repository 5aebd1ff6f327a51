// The identity of a run, wherever it is planned, recorded, judged or reported. A report has one backend, so the backend
// is not part of it. No torch.
#pragma once

#include <compare>
#include <string>

namespace plumbline::conformance {

struct RunId {
  std::string case_id = {};    ///< or the name of a backend's custom model
  std::string schedule = {};   ///< a name, or the path of a file
  int ranks = 0;               ///< 0: unknown
  std::string transport = {};  ///< transport_name(); empty: unknown

  auto operator<=>(const RunId&) const = default;
};

/// "4 ranks, mpi"; unknown parts are left out.
std::string place_of(const RunId& run);

/// "exact-mlp x 1f1b (4 ranks, mpi)"
std::string to_string(const RunId& run);

}  // namespace plumbline::conformance
