// The subcommands of `plumbline`: each function adds one to the parser, which sets `chosen` if the user names it.
#pragma once

#include "conformance/cli/entry.h"

namespace plumbline::cli {

void add_list(CLI::App& app, Command& chosen);
void add_run(CLI::App& app, Command& chosen);
void add_mutants(CLI::App& app, Command& chosen);
void add_backend(CLI::App& app, Command& chosen);
void add_schedule(CLI::App& app, Command& chosen);
void add_simulate(CLI::App& app, Command& chosen);
void add_split(CLI::App& app, Command& chosen);
void add_partition(CLI::App& app, Command& chosen);
void add_check(CLI::App& app, Command& chosen);
void add_report(CLI::App& app, Command& chosen);
void add_doctor(CLI::App& app, Command& chosen);
void add_bench(CLI::App& app, Command& chosen);
void add_export(CLI::App& app, Command& chosen);

/// Stores the command line of this program; command_line() returns it as one line.
void remember_command_line(int argc, char** argv);
const std::string& command_line();
/// The arguments after the program's name.
const std::vector<std::string>& arguments();

}  // namespace plumbline::cli
