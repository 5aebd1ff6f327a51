// The subcommands of `plumbline`: each adds itself to the parser and does its work when chosen.
#pragma once

#include <CLI/CLI.hpp>

#include <functional>

namespace plumbline {

/// Set by the subcommand that was chosen; returns the exit code.
using Command = std::function<int()>;

void add_list(CLI::App& app, Command& chosen);
void add_run(CLI::App& app, Command& chosen);
void add_backend(CLI::App& app, Command& chosen);
void add_schedule(CLI::App& app, Command& chosen);
void add_bench(CLI::App& app, Command& chosen);

/// This executable's own path.
std::string own_path();

/// The words this program was started with, as one line.
void remember_command_line(int argc, char** argv);
const std::string& command_line();

}  // namespace plumbline
