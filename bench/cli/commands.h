// The subcommands of `plumbline-bench`: each adds itself to the parser and does its work when chosen.
#pragma once

#include <CLI/CLI.hpp>

#include <functional>

namespace plumbline::bench {

/// Set by the subcommand that was chosen; returns the exit code.
using Command = std::function<int()>;

void add_micro(CLI::App& app, Command& chosen);
void add_throughput(CLI::App& app, Command& chosen);
void add_instructions(CLI::App& app, Command& chosen);

}  // namespace plumbline::bench
