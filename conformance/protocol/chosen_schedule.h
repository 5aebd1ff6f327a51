// The schedules that a user chose, by pattern or as CSV files, as a job holds them.
#pragma once

#include <string>
#include <vector>

#include "runtime/schedule/schedule.h"

namespace plumbline::conformance {

/// The name of a schedule that comes with a case.
inline constexpr const char* kOwnSchedule = "own";

/// A generator by name, for any number of ranks and micro-batches; or a schedule from a file, with fixed numbers.
struct ChosenSchedule {
  std::string name;  ///< of a generator, or the path of the file as the user gave it
  std::string csv;   ///< the text of the file; empty for a generator
};

/// Names of generators that match one of the shell patterns. Throws InputError, naming them all, for a pattern without
/// a match.
std::vector<std::string> matching_schedules(const std::vector<std::string>& patterns);

/// The schedules of patterns and names of .csv files, separated by commas: generators in the order of their table, each
/// once, then the files. Throws InputError for a pattern without a match.
std::vector<std::string> expand_schedules(const std::string& patterns);

/// expand_schedules(), with the files read. Throws InputError for a pattern without a match, an unreadable file, and a
/// file whose schedule is malformed or, if it has no transfers, cannot run (csv.h, check.h).
std::vector<ChosenSchedule> choose_schedules(const std::string& patterns);

/// The schedule for so many ranks and micro-batches. Throws InputError where it does not exist for them.
schedule::Schedule make_schedule(const ChosenSchedule& chosen, int ranks, int microbatches);

/// The schedule over so many stages: on `ranks` ranks, or, with 0, on as many as these stages take. Throws InputError
/// where it does not exist.
schedule::Schedule schedule_over_stages(const ChosenSchedule& chosen, int stages, int ranks, int microbatches);

}  // namespace plumbline::conformance
