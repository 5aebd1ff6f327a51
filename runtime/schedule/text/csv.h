// Reads and writes schedules as CSV, in PyTorch's form: one row per rank, one entry (action.h) per cell.
//
// The writer follows Python's csv module with its defaults (the excel dialect: commas, rows end in CR LF). PyTorch has
// two formats: `compute_only`, with F, B, I, W and groups of them, which PyTorch lowers when it reads the file; and
// `compute_comms`, which PyTorch runs unchanged. The text does not name its format; the actions imply it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "runtime/schedule/schedule.h"
#include "runtime/schedule/text/dialect.h"

namespace plumbline::schedule {

std::string to_csv(const Schedule& schedule);

/// "compute_only" or "compute_comms": the format argument of PyTorch's _load_csv.
std::string_view csv_format(const Schedule& schedule);

/// Parses the output of to_csv or of PyTorch; `name` becomes the schedule's name and prefixes every error. A byte order
/// mark is skipped, rows end in LF or CR LF, cells may have blanks or double quotes around them, an empty cell is a
/// bubble and is skipped. Stages, micro-batches, the placement of stages and replicas come from the computations
/// (derive_placement).
///
/// If the dialect is given, an action outside it is refused; text of Dialect::Torch2024 is converted to today's kinds.
/// Without a dialect, both of today's dialects are accepted, and a text that can only be of 2024 is refused.
///
/// Throws InputError with row, cell (both from 1) and reason for a cell that is no entry, a row without actions, a
/// stage on two ranks that is no replica, a gap in the stages or micro-batches. Does not check that the schedule is
/// complete and can run: see check.h.
Schedule parse_csv(std::string_view text, const std::string& name, std::optional<Dialect> dialect = {});

}  // namespace plumbline::schedule
