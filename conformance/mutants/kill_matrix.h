// The kill matrix: which run of which case gives which mutant away, and how. Plain data, its text and its JSON; no
// torch.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/protocol/run_id.h"

namespace plumbline::conformance {

/// What became of a mutant in one run.
enum class Kill {
  Untested,       ///< it was given away often enough elsewhere
  NotApplicable,  ///< the case or the schedule lacks what it needs
  NeverHappened,  ///< it was put in, and changed nothing
  Survived,       ///< it changed something, and the run passed
  Fail,           ///< a result differs
  Error,          ///< the runtime refused to go on
  Timeout,        ///< a rank waited in vain
};

/// "untested", "not-applicable", "never-happened", "survived", "fail", "error", "timeout".
std::string_view kill_name(Kill kill);
/// The inverse. InputError for another text.
Kill parse_kill(std::string_view text);
/// . - o s X E T
char kill_symbol(Kill kill);
constexpr bool is_kill(Kill kill) { return kill >= Kill::Fail; }

struct MatrixRow {
  std::string mutant;
  std::string what;
  std::vector<Kill> cells;  ///< by run
  /// What gave it away, by run; empty elsewhere.
  std::map<size_t, std::string> reasons;

  int count(Kill kill) const;
  int kills() const;
};

struct KillMatrix {
  std::vector<RunId> runs;
  std::vector<MatrixRow> rows;
  /// Runs that do not pass without a fault, and why.
  std::map<size_t, std::string> broken;
};

/// Mutants that were put into some run and given away by none.
std::vector<std::string> survivors(const KillMatrix& matrix);
/// Mutants that only one case gives away.
std::vector<std::string> killed_by_one_case(const KillMatrix& matrix);
/// Cases that gave nothing away, although something that happened was put into them.
std::vector<std::string> cases_that_kill_nothing(const KillMatrix& matrix);

/// Mutants as rows, cases as columns (the strongest of their runs), then what the three functions above say. Ends with
/// a newline.
std::string matrix_text(const KillMatrix& matrix);

/// Writes kill-matrix.json and kill-matrix.txt. InputError when it cannot be.
void write_matrix(const std::filesystem::path& folder, const KillMatrix& matrix);

/// Recorded killers: for each mutant the runs that are known to give it away.
struct Killer {
  RunId run;
  Kill by = Kill::Fail;
  bool operator==(const Killer&) const = default;
};
using Killers = std::map<std::string, std::vector<Killer>>;

/// The first two of each row, of different cases where there are such.
Killers killers_of(const KillMatrix& matrix);
void write_killers(const std::filesystem::path& path, const Killers& killers);
/// InputError naming the file and the place in it.
Killers read_killers(const std::filesystem::path& path);

}  // namespace plumbline::conformance
