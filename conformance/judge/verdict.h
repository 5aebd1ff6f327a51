// The verdict on one run, as reports keep it: the judge's finding with the identity of the run, and its text of one
// line. No torch.
#pragma once

#include <string>

#include "conformance/judge/finding.h"
#include "conformance/protocol/run_id.h"

namespace plumbline::conformance {

struct Verdict {
  RunId run;
  std::string title = {};    ///< of the case
  std::string dtype = {};    ///< of the case, "f32"; empty: unknown
  std::string backend = {};  ///< the name that it gives itself; empty: unknown
  std::string device = {};   ///< "cpu"; empty: unknown
  Finding finding = {};      ///< its status as waived
  std::string waiver = {};   ///< of XFail and XPass: the waiver, its reason, link and date, in one line
  double seconds = 0.0;
  std::string repro = {};  ///< a command line that repeats just this run
};

/// "FAIL exact-mlp x 1f1b (4 ranks, mpi): " and the first difference, or the reason; for a pass, the checked kinds. One
/// line.
std::string sentence(const Verdict& verdict);

/// "f32", "bf16", "f64", "f16".
std::string dtype_text(reference::Dtype dtype);

}  // namespace plumbline::conformance
