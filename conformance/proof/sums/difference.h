// The results of a run that are not the expected terms, and what they are as sums.
#pragma once

#include <string>
#include <vector>

#include "conformance/proof/sums/normal_form.h"

namespace plumbline::proof {

struct Difference {
  std::string key;  ///< of the result
  TermRelation relation = {Relation::AnotherSum};
  int stage = -1;  ///< that computed the found term; -1: unknown
};

/// "all 16 are the expected sum in another order"; "2 are the expected sum in another order, 8 are 1/4 of the expected
/// sum (stage 0), 3 are other sums". Empty without differences.
std::string sums_text(const std::vector<Difference>& differences);

}  // namespace plumbline::proof
