// The corpus: every case, as plain data, and the profiles that select among them. No torch.
//
// An id never changes its meaning: a corrected case gets a new id. At least 60 % of the cases are exact.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "reference/case.h"

namespace plumbline::conformance {

/// All cases, axis by axis in the order of cases/axes.h. Valid for the life of the program.
const std::vector<reference::Case>& corpus();

/// The names that profile() accepts: "core", "full", "nightly", "ranks", "smoke", and the name of each feature
/// (features.h).
const std::vector<std::string>& profile_names();

/// Returns the cases of a profile, in the order of the corpus. "core", "nightly", "full" and "ranks" contain every
/// case; they differ in the schedules, numbers of ranks and transports that make_plan() combines with the cases
/// (plan.h). "smoke" contains twelve quick cases. The profile of a feature contains the cases with that feature. Throws
/// InputError, which lists the accepted names, for any other name.
std::vector<reference::Case> profile(std::string_view name);

/// Returns the elements of `cases` whose id matches a shell pattern (fnmatch: * ? [...]). Throws InputError, which
/// names the ids nearest to the pattern, if no id matches.
std::vector<reference::Case> select(const std::vector<reference::Case>& cases, const std::string& glob);

/// Returns the case of the corpus with exactly this id. Throws InputError, which names the nearest ids, if no case has
/// it.
const reference::Case& find_case(const std::string& id);

/// The case with another number of micro-batches (0: as it is). Exact truth rests on divisions by powers of two: with
/// other numbers the case is judged as same-order, and `note` says so.
reference::Case with_microbatches(reference::Case c, int microbatches, std::string& note);

}  // namespace plumbline::conformance
