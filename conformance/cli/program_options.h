// The options of `plumbline run --program` and `plumbline split` that say how a program is cut.
#pragma once

#include <CLI/CLI.hpp>

#include "conformance/program/program_split.h"

namespace plumbline::cli {

/// Adds --split, --stages, --policy, --shared and --route. Parsing writes to `split`, which must live as long as the
/// command; combinations are not checked here.
void add_split_options(CLI::App& command, program::ProgramSplit& split);

}  // namespace plumbline::cli
