// Where a schedule comes from when a user names one: a generator by its name, or a CSV file.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "runtime/schedule/orders/generators.h"
#include "runtime/schedule/text/dialect.h"

namespace plumbline::conformance {

/// True for what load_schedule reads as a file: a text that ends in .csv.
bool is_schedule_file(const std::string& name_or_file);

/// The text of such a file. Throws InputError, one line, for one that cannot be read, and for a directory.
std::string read_schedule_file(const std::string& file);

/// What `text`, read from `file`, holds: a compute schedule or a lowered one, as it stands there (check.h says whether
/// it can run). In `request` (whose own name is not looked at), 0 ranks or 0 micro-batches mean that nobody said how
/// many. A file brings its own, and a request that says otherwise, or that has a field only generators have a use for,
/// is refused. `dialect`: of the text (dialect.h). Throws InputError, one line, also for what parse_csv refuses.
schedule::Schedule parse_schedule_file(std::string_view text, const std::string& file,
                                       const schedule::ScheduleRequest& request,
                                       std::optional<schedule::Dialect> dialect = {});

/// The schedule of that name made to `request`, which must say how many ranks and micro-batches; or what
/// parse_schedule_file has to say of the file by that name. A dialect is refused for a name.
/// Throws InputError, one line: what make_schedule and parse_schedule_file refuse, a file that cannot be read, a
/// directory, a text that is neither a name nor ends in .csv.
schedule::Schedule load_schedule(const std::string& name_or_file, const schedule::ScheduleRequest& request,
                                 std::optional<schedule::Dialect> dialect = {});

}  // namespace plumbline::conformance
