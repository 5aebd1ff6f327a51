// The source of a schedule that a user names: a generator by its name, or a CSV file.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "runtime/schedule/orders/schedule_kinds.h"
#include "runtime/schedule/text/dialect.h"

namespace plumbline::conformance {

/// True for a string that ends in .csv: load_schedule reads it as a file.
bool is_schedule_file(const std::string& name_or_file);

/// The text of a schedule file. Throws InputError of one line for an unreadable file and for a directory.
std::string read_schedule_file(const std::string& file);

/// The schedule in `text`, read from `file`: a compute schedule or a lowered one, unchecked (check.h checks whether it
/// can run). A file has its own numbers of ranks and micro-batches: in `request` (whose name is ignored) 0 accepts any,
/// and another number, or a field for generators only, is refused. `dialect`: of the text (dialect.h). Throws
/// InputError, one line, also for a text that parse_csv refuses.
schedule::Schedule parse_schedule_file(std::string_view text, const std::string& file,
                                       const schedule::ScheduleRequest& request,
                                       std::optional<schedule::Dialect> dialect = {});

/// The schedule of that name for `request`, which must have the numbers of ranks and micro-batches; or the one in the
/// file of that name, from parse_schedule_file(). A dialect is refused for a name. Throws InputError, one line, as
/// make_schedule and parse_schedule_file do, and for a file that cannot be read, a directory, and a string that neither
/// is a name nor ends in .csv.
schedule::Schedule load_schedule(const std::string& name_or_file, const schedule::ScheduleRequest& request,
                                 std::optional<schedule::Dialect> dialect = {});

}  // namespace plumbline::conformance
