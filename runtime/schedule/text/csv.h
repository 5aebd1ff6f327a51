// Schedules as CSV, in PyTorch's form: one row per rank, one entry per cell (action.h).
//
// Written as Python's csv module writes by default (the excel dialect: commas, rows end in CR LF). PyTorch has two
// formats: `compute_only`, with F, B, I, W and groups of them, which it lowers when it reads it; and `compute_comms`,
// which it runs as it is. The text does not say which it is; what stands in it does.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "runtime/schedule/schedule.h"
#include "runtime/schedule/text/dialect.h"

namespace plumbline::schedule {

std::string to_csv(const Schedule& schedule);

/// "compute_only" or "compute_comms": what PyTorch's _load_csv must be told.
std::string_view csv_format(const Schedule& schedule);

/// Reads what to_csv or PyTorch wrote; `name` becomes the schedule's name and opens every error. A byte order mark is
/// skipped, rows end in LF or CR LF, cells may have blanks or double quotes around them, an empty cell is a bubble and
/// is skipped. Stages, micro-batches, the placement of stages and replicas come from the computations
/// (derive_placement).
/// Where the dialect is given, an action that it does not have is refused; Dialect::Torch2024 is read as what it meant.
/// Where it is not, both of today's are read, and a text that can only be of 2024 is refused.
/// Throws InputError with row, cell (both from 1) and reason: a cell that is no entry, a row without actions, a stage
/// on two ranks that is no replica, a gap in the stages or micro-batches. Whether the schedule is complete and can run
/// is for check.h.
Schedule parse_csv(std::string_view text, const std::string& name, std::optional<Dialect> dialect = {});

}  // namespace plumbline::schedule
