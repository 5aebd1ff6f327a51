// Loads the schedule that a user names: a generator by its name, or a CSV file.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "runtime/schedule/orders/schedule_kinds.h"
#include "runtime/schedule/text/dialect.h"

namespace plumbline::conformance {

/// Whether load_schedule() reads this as a file: whether the text ends in .csv.
bool is_schedule_file(const std::string& name_or_file);

/// Parses the schedule in `text`; `file` names it in errors. The schedule may contain explicit transfers or
/// computations only, and is not checked: check.h decides whether it can run. The file determines the numbers of ranks
/// and micro-batches; in `request`, whose name is ignored, 0 means unspecified. `dialect` is that of the text
/// (dialect.h); nullopt: as parse_csv() decides. Throws InputError of one line for text that parse_csv() refuses, and
/// for a request with other numbers or with a field that only generators have.
schedule::Schedule parse_schedule_file(std::string_view text, const std::string& file,
                                       const schedule::ScheduleRequest& request,
                                       std::optional<schedule::Dialect> dialect = {});

/// Returns the schedule of a generator for `request`, which must contain the numbers of ranks and micro-batches, or
/// parses the file with parse_schedule_file(). Throws InputError of one line as make_schedule() and
/// parse_schedule_file() do, and for an unreadable file, a directory, a dialect given for a generator, and a text that
/// is neither the name of a generator nor ends in .csv.
schedule::Schedule load_schedule(const std::string& name_or_file, const schedule::ScheduleRequest& request,
                                 std::optional<schedule::Dialect> dialect = {});

}  // namespace plumbline::conformance
