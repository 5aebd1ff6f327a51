// The options of `plumbline run --program` and `plumbline split` that say how a program is cut.
#pragma once

#include <CLI/CLI.hpp>

#include "conformance/program/options.h"

namespace plumbline {

void add_split_options(CLI::App& command, ProgramSplit& split);

}  // namespace plumbline
