// `plumbline prove`: which runs are proven, and what is printed and certified of them.
#pragma once

#include <filesystem>
#include <iosfwd>

#include "conformance/plan/plan.h"
#include "conformance/proof/claim.h"

namespace plumbline::proof {

struct CertifiedRun;  // certificate.h

struct CasesOptions {
  /// The selection of runs, the fault, recompute, remat, micro-batches and seed; its other fields are not read.
  conformance::RunOptions run;
  Claim claim = Claim::SameComputation;
  std::filesystem::path certificate = {};  ///< empty: none is written
  std::filesystem::path terms = {};        ///< where the terms of the only run go (term_file.h); empty: nowhere
};

/// Proves the run with the fault, recompute, remat, micro-batches, seed and claim of the options, and writes its terms.
CertifiedRun prove_run(const conformance::PlannedRun& run, const CasesOptions& options);

/// Proves every run that the options select, prints a line for each to `out`, and writes the certificate. Returns the
/// exit code: 0 if all are proven, 1 if one is not. Throws InputError if none of them can be taken, or
/// if terms are asked for and there are several runs.
int prove_cases(const CasesOptions& options, std::ostream& out);

}  // namespace plumbline::proof
