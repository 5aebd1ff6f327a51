// Schedules as CSV, in PyTorch's form: one row per rank, one action per cell (action.h).
//
// Written as Python's csv module writes by default (the excel dialect: commas, rows end in CR LF). The compute form
// (F, B, I, W) is PyTorch's `compute_only`; a lowered schedule gives `compute_comms`.
#pragma once

#include <string>
#include <string_view>

#include "runtime/schedule/schedule.h"

namespace plumbline {

std::string to_csv(const Schedule& schedule);

/// Reads what to_csv or PyTorch wrote; `name` becomes the schedule's name and opens every error. Rows end in LF or CR
/// LF, cells may have blanks or double quotes around them, an empty cell is a bubble and is skipped. Stages,
/// micro-batches and the placement of stages come from the compute actions. Throws InputError with row, cell (both from
/// 1) and reason: a cell that is no action, a row without actions, a stage on two ranks, a gap in the stages or
/// micro-batches. Whether the schedule is complete and can run is for check.h.
Schedule parse_csv(std::string_view text, const std::string& name);

}  // namespace plumbline
