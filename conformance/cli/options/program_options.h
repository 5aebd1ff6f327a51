// The options by which `plumbline run`, `prove` and `split` take a program from Python.
#pragma once

#include <CLI/CLI.hpp>

#include "conformance/plan/plan.h"
#include "conformance/program/options.h"

namespace plumbline::cli {

/// Adds --split, --stages, --policy, --shared and --route. Parsing writes to `split`, which must live as long as the
/// command; combinations are not checked here.
void add_split_options(CLI::App& command, program::ProgramSplit& split);

/// Adds --program with the meaning `what`, the options of add_split_options(), --inputs and --loss.
void add_step_options(CLI::App& group, program::ProgramOptions& program, const std::string& what);

/// Copies the options that runs of cases and of programs share: schedule, micro-batches, ranks, recompute, remat, seed.
/// Throws InputError if there are several numbers of ranks, and for options that contradict each other.
void take_step_options(const conformance::RunOptions& run, program::ProgramOptions& program);

}  // namespace plumbline::cli
