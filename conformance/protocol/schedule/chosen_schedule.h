// The schedules that a user chose, by pattern or as CSV files, in the form that a job contains.
#pragma once

#include <string>
#include <vector>

#include "runtime/schedule/schedule.h"

namespace plumbline::conformance {

/// The name under which a case's built-in schedule runs (Case::schedule_csv).
inline constexpr const char* kOwnSchedule = "own";

/// A generator, which makes schedules for any number of ranks and micro-batches, or a schedule from a file, in which
/// these numbers are fixed.
struct ChosenSchedule {
  std::string name;  ///< of a generator, or the path of the file as the user gave it
  std::string csv;   ///< the text of the file; empty for a generator
};

/// Returns the names of the generators that match one of the shell patterns. Throws InputError, which lists all names,
/// for a pattern without a match.
std::vector<std::string> matching_schedules(const std::vector<std::string>& patterns);

/// Expands patterns and paths of .csv files, separated by commas, to names of generators (each once, in the order of
/// schedule_names()), followed by the files. Throws InputError for a pattern without a match.
std::vector<std::string> expand_schedules(const std::string& patterns);

/// Expands `patterns` with expand_schedules() and reads the files. Throws InputError for a pattern without a match, an
/// unreadable file, two files of the same name in different folders, and a file whose schedule is malformed or cannot
/// run (csv.h, check.h; a schedule with explicit transfers is not checked here, since they depend on the model).
std::vector<ChosenSchedule> choose_schedules(const std::string& patterns);

/// Returns the schedule for `ranks` ranks and `microbatches` micro-batches; for a file, 0 accepts the number in the
/// file. Throws InputError if the schedule cannot have these numbers.
schedule::Schedule make_schedule(const ChosenSchedule& chosen, int ranks, int microbatches);

/// Returns the schedule with `stages` stages on `ranks` ranks; 0 selects the largest possible number of ranks. Throws
/// InputError if the schedule cannot have these numbers.
schedule::Schedule schedule_over_stages(const ChosenSchedule& chosen, int stages, int ranks, int microbatches);

}  // namespace plumbline::conformance
