// The verdict on one run, as reports keep it: the judge's finding with the identity of the run. No torch.
#pragma once

#include <string>

#include "conformance/judge/verdict/finding.h"
#include "conformance/protocol/run_id.h"

namespace plumbline::conformance {

struct Verdict {
  RunId run;
  std::string title = {};    ///< of the case
  std::string dtype = {};    ///< of the case, "f32"; empty: unknown
  std::string backend = {};  ///< the name in the backend's own description; empty: unknown
  std::string device = {};   ///< "cpu" or "cuda"; empty: unknown
  Finding finding = {};      ///< its status is the one after waivers
  std::string waiver = {};   ///< for XFail and XPass: the applied waiver, with its reason, link and date, in one line
  double seconds = 0.0;      ///< duration of the run
  std::string repro = {};    ///< a command line that repeats this run alone
  std::string log = {};      ///< the file with what the backend printed, relative to the report folder; empty: none
};

/// "FAIL exact-mlp x 1f1b (4 ranks, mpi): " followed by the sentence of the finding and, in brackets, the applied
/// waiver. One line.
std::string sentence(const Verdict& verdict);

}  // namespace plumbline::conformance
