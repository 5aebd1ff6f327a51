// The corpus: every case, as plain data, and the profiles that select among them. No torch.
//
// An id never changes its meaning: a corrected case gets a new id. At least 60 % of the cases are exact.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reference/case.h"

namespace plumbline::conformance {

/// All cases: those of cases/*.toml, chapter by chapter, then those of add_cases().
const std::vector<reference::Case>& corpus();

/// A file of cases, and the name by which errors mention it.
struct CaseText {
  std::string name, text;
};

/// The files of cases in a user's folder (case_file.h); none for an empty path. Throws InputError, see case_files() and
/// read_file().
std::vector<CaseText> read_case_texts(const std::filesystem::path& folder);

/// Adds a user's cases to the corpus. Throws InputError, see CaseFiles::read(). Invalidates references to cases: call
/// it before anything else that uses the corpus.
void add_cases(std::span<const CaseText> files);
/// The same for read_case_texts() of `folder`.
void add_cases(const std::filesystem::path& folder);

/// The names that profile() accepts: "cases", "core", "nightly", "ranks", "smoke", and the name of each feature
/// (features.h).
const std::vector<std::string>& profile_names();

/// Returns the cases of a profile, in the order of the corpus. "cases", "core", "nightly" and "ranks" contain every
/// case; they differ in the schedules, numbers of ranks and transports that make_plan() combines with the cases
/// (plan.h). "smoke" contains the quick cases of smoke.h. The profile of a feature contains the cases with that
/// feature. Throws InputError, which names the nearest, for any other name.
std::vector<reference::Case> profile(std::string_view name);

/// Returns the elements of `cases` whose id matches one of the shell patterns (fnmatch: * ? [...]), separated by
/// commas. Throws InputError, which names the nearest ids, for a pattern without a match.
std::vector<reference::Case> select(const std::vector<reference::Case>& cases, const std::string& patterns);

/// Returns the case of the corpus with exactly this id. Throws InputError, which names the nearest ids, if no case has
/// it.
const reference::Case& find_case(const std::string& id);

/// The case with another number of micro-batches (0: as it is). Exact truth rests on divisions by powers of two: with
/// other numbers the case is judged as same-order, and `note` says so.
reference::Case with_microbatches(reference::Case c, int microbatches, std::string& note);

}  // namespace plumbline::conformance
