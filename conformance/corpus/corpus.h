// The corpus: every case, as plain data, and the profiles that select among them. No torch.
//
// An id never changes its meaning: a corrected case gets a new id. At least 60 % of the cases are exact.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "reference/case.h"

namespace plumbline::conformance {

/// All cases, exact ones first.
const std::vector<reference::Case>& corpus();

/// Names that profile() accepts.
const std::vector<std::string>& profile_names();

/// The cases of a profile, in the order of the corpus: "core" is what a backend must pass, "nightly" the same cases in
/// more combinations (plan.h), "smoke" four quick ones.
/// Throws InputError, which lists the names, for another name.
std::vector<reference::Case> profile(std::string_view name);

/// The cases whose id matches a shell pattern (fnmatch: * ? [...]). Throws InputError, which names the ids nearest to
/// the pattern, if none does.
std::vector<reference::Case> select(const std::vector<reference::Case>& cases, const std::string& glob);

/// The case with exactly this id. Throws InputError, which names the nearest ids, if there is none.
const reference::Case& find_case(const std::string& id);

/// The case with another number of micro-batches (0: as it is). Exact truth rests on divisions by powers of two: with
/// other numbers the case is judged as same-order, and `note` says so.
reference::Case with_microbatches(reference::Case c, int microbatches, std::string& note);

}  // namespace plumbline::conformance
