// Loads the schedule that a user names: a generator by its name, or a CSV file.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "runtime/schedule/orders/schedule_kinds.h"
#include "runtime/schedule/text/dialect.h"

namespace plumbline::conformance {

/// Whether load_schedule() reads this as a file: it ends in .csv.
bool is_schedule_file(const std::string& name_or_file);

/// The text of a schedule file. Throws InputError of one line for an unreadable file and for a directory.
std::string read_schedule_file(const std::string& file);

/// The schedule in `text`, read from `file`: compute or lowered, unchecked (check.h decides whether it can run). The
/// file determines the numbers of ranks and micro-batches; in `request`, whose name is ignored, 0 means unspecified. A
/// request with other numbers, or with a field for generators only, is refused. `dialect`: of the text (dialect.h).
/// Throws InputError of one line, also for text that parse_csv refuses.
schedule::Schedule parse_schedule_file(std::string_view text, const std::string& file,
                                       const schedule::ScheduleRequest& request,
                                       std::optional<schedule::Dialect> dialect = {});

/// The schedule that a generator makes for `request`, which must give the numbers of ranks and micro-batches; or
/// parse_schedule_file() of the file. A dialect is refused for a generator.
/// Throws InputError of one line: the refusals of make_schedule and parse_schedule_file, an unreadable file, a
/// directory, and text that is neither a generator's name nor ends in .csv.
schedule::Schedule load_schedule(const std::string& name_or_file, const schedule::ScheduleRequest& request,
                                 std::optional<schedule::Dialect> dialect = {});

}  // namespace plumbline::conformance
