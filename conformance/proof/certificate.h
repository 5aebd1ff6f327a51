// The certificate of `plumbline prove`: what was proven, of which runs, under which assumptions, and what was not.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "conformance/plan/planned_run.h"
#include "conformance/proof/prove.h"

namespace plumbline::proof {

/// One run, and its proof or the reason why there is none.
struct CertifiedRun {
  conformance::PlannedRun run;
  int stages = 0, microbatches = 0;
  std::string mutant = {}, not_taken = {};  ///< its name; why there is no proof; both may be empty
  std::string recompute = "never", remat = {};
  uint64_t seed = 1;
  Proof proof = {};
};

inline constexpr const char* kRunsFormat = "plumbline-proof/3";
/// The outcome of a run that a proof does not take; also the answer for such a step (rows/step_cases.h).
inline constexpr const char* kNotTaken = "not-taken";

/// The assumptions of a proof, and the claims that it does not prove; one sentence each, as in docs/proof.md.
const std::vector<std::string>& assumptions();
const std::vector<std::string>& not_proven();

/// One hash of the keys and terms of all results of a run: 32 hexadecimal digits.
std::string root_of(const ResultTerms& results);

/// The entry of the run in the certificate.
nlohmann::json json_of(const CertifiedRun& run);

/// Writes JSON. Throws InputError if the file cannot be written.
void write_certificate(const std::filesystem::path& path, Claim claim, const std::vector<CertifiedRun>& runs);

}  // namespace plumbline::proof
