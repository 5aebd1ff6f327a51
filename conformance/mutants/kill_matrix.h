// The kill matrix: which run of which case kills which mutant, and how. Plain data, its text and its JSON; no torch.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/protocol/run_id.h"

namespace plumbline::conformance {

/// The outcome of a mutant in one run.
enum class Kill {
  Untested,       ///< enough other runs had killed it
  NotApplicable,  ///< the case or the schedule lacks a requirement of the mutant
  NeverHappened,  ///< it was injected, and changed nothing
  Survived,       ///< it changed something, and the run passed
  Fail,           ///< a result differs
  Error,          ///< the runtime stopped with an error
  Timeout,        ///< a rank ran into its deadline
};

/// "untested", "not-applicable", "never-happened", "survived", "fail", "error", "timeout".
std::string_view kill_name(Kill kill);
/// The inverse of kill_name(). Throws InputError on any other text.
Kill parse_kill(std::string_view text);
/// In the order of Kill: . - o s X E T
char kill_symbol(Kill kill);
constexpr bool is_kill(Kill kill) { return kill >= Kill::Fail; }

struct MatrixRow {
  std::string mutant;
  std::string what;
  std::vector<Kill> cells;  ///< by run
  /// How it was killed, by run. Only runs that killed it have an entry.
  std::map<size_t, std::string> reasons;

  int count(Kill kill) const;
  int kills() const;
};

struct KillMatrix {
  std::vector<RunId> runs;
  std::vector<MatrixRow> rows;
  /// Runs that fail without a fault, and the reason.
  std::map<size_t, std::string> broken;
};

/// Mutants that no run killed, whether or not one could be injected.
std::vector<std::string> survivors(const KillMatrix& matrix);
/// Mutants that only one case kills.
std::vector<std::string> killed_by_one_case(const KillMatrix& matrix);
/// Cases that killed no mutant, although at least one changed something in them.
std::vector<std::string> cases_that_kill_nothing(const KillMatrix& matrix);

/// Mutants as rows, cases as columns (the strongest outcome of their runs), then the lists of the three functions
/// above. Ends with a newline.
std::string matrix_text(const KillMatrix& matrix);

/// Writes kill-matrix.json and kill-matrix.txt. Throws InputError if it cannot.
void write_matrix(const std::filesystem::path& folder, const KillMatrix& matrix);

/// A recorded run that kills a mutant, and how.
struct Killer {
  RunId run;
  Kill by = Kill::Fail;
  bool operator==(const Killer&) const = default;
};
/// By mutant.
using Killers = std::map<std::string, std::vector<Killer>>;

/// The first two killers of each row, from different cases if possible.
Killers killers_of(const KillMatrix& matrix);
void write_killers(const std::filesystem::path& path, const Killers& killers);
/// Throws InputError naming the file and the place in it.
Killers read_killers(const std::filesystem::path& path);

}  // namespace plumbline::conformance
