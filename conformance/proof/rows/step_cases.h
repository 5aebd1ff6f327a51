// `plumbline prove --claim step`: which cases are proven, and what is printed and certified of them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <iosfwd>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "conformance/proof/rows/same_step.h"

namespace plumbline::proof {

struct StepCasesOptions {
  std::string cases;     ///< patterns of ids, see conformance::select()
  int microbatches = 0;  ///< 0: each case's own
  uint64_t seed = 1;
  std::filesystem::path certificate = {};  ///< empty: none is written
};

inline constexpr const char* kStepsFormat = "plumbline-step-proof/2";

/// One case, and its proof or the reason why there is none.
struct CertifiedStep {
  reference::Case c;
  std::string not_taken = {};
  StepProof proof = {};
};

/// Proves the step of the case with this id, with this number of micro-batches (0: its own).
CertifiedStep prove_step(const std::string& id, int microbatches, uint64_t seed);

/// The entry of the case in a certificate.
nlohmann::json json_of(const CertifiedStep& step);

/// Proves every case that the options select, prints its answer and its weights to `out`, and writes the certificate.
/// Returns the exit code: 0 if all are proven, 1 if one is not. Throws InputError if none of them can be taken.
int prove_steps(const StepCasesOptions& options, std::ostream& out);

/// "loss: needed 3/10 x 2, 1/5 x 2; used 1/4 x 4", a line for each loss.
std::vector<std::string> weight_lines(const std::vector<LossWeight>& weights);

}  // namespace plumbline::proof
