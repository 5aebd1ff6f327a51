// The kill matrix: which runs of which cases kill which mutants, and how. Plain data with its text and JSON; no torch.
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
  Untested,       ///< enough other runs had killed the mutant, or the run fails without a fault
  NotApplicable,  ///< the case or the schedule does not meet a requirement of the mutant
  NeverHappened,  ///< the mutant was injected but changed nothing
  Survived,       ///< the mutant changed something, and the run passed
  Fail,           ///< killed: a result differs, or the results are mistrusted
  Error,          ///< killed: the runtime stopped with an error
  Timeout,        ///< killed: a rank exceeded its deadline
};

/// "untested", "not-applicable", "never-happened", "survived", "fail", "error", "timeout".
std::string_view kill_name(Kill kill);
/// One character, in the order of Kill: . - o s X E T
char kill_symbol(Kill kill);
constexpr bool is_kill(Kill kill) { return kill >= Kill::Fail; }

struct MatrixRow {
  std::string mutant;
  std::string what;         ///< the mutant's description, one sentence
  std::vector<Kill> cells;  ///< indexed as KillMatrix::runs
  /// The judge's sentence or the error, by index of the run. Only runs that killed the mutant have an entry.
  std::map<size_t, std::string> reasons;

  int count(Kill kill) const;  ///< number of runs with this outcome
  int kills() const;           ///< number of runs that killed the mutant
};

struct KillMatrix {
  std::vector<RunId> runs;
  std::vector<MatrixRow> rows;
  /// The reasons of the runs that do not pass without a fault, by index of the run. Their cells are Untested.
  std::map<size_t, std::string> broken;
};

/// Names of the mutants that no run killed, including mutants that no run could take.
std::vector<std::string> survivors(const KillMatrix& matrix);
/// Names of the mutants that exactly one case kills.
std::vector<std::string> killed_by_one_case(const KillMatrix& matrix);
/// Ids of the cases that killed no mutant although some mutant changed something in them.
std::vector<std::string> cases_that_kill_nothing(const KillMatrix& matrix);

/// Returns the table with mutants as rows and cases as columns, then the lists of the three functions above and the
/// runs that do not pass without a fault. A cell is the first kill among the runs of the case, in the order of the
/// runs. Without a kill, it is the greatest Kill value among the runs to which the mutant applies. Ends with a newline.
std::string matrix_text(const KillMatrix& matrix);

/// Writes kill-matrix.json and kill-matrix.txt into `folder`, which exists. Throws WriteError if that fails.
void write_matrix(const std::filesystem::path& folder, const KillMatrix& matrix);

/// A recorded run that kills a mutant, and the way in which it does.
struct Killer {
  RunId run;
  Kill by = Kill::Fail;
  bool operator==(const Killer&) const = default;
};
/// By name of the mutant.
using Killers = std::map<std::string, std::vector<Killer>>;

/// The first two killers of each row, from different cases if possible; fewer if fewer runs kill the mutant.
Killers killers_of(const KillMatrix& matrix);
/// Writes JSON. Throws InputError if the file cannot be written.
void write_killers(const std::filesystem::path& path, const Killers& killers);
/// Reads a file of write_killers(). Throws InputError, which names the file and the place in it, if the file cannot be
/// read or is malformed.
Killers read_killers(const std::filesystem::path& path);

}  // namespace plumbline::conformance
