// The subcommands of `plumbline`: each function adds one to the parser. If the user names it, parsing sets `chosen`, to
// which the parser keeps a reference.
#pragma once

#include "conformance/cli/entry.h"

namespace plumbline::cli {

void add_list(CLI::App& app, Command& chosen);
void add_run(CLI::App& app, Command& chosen);
void add_prove(CLI::App& app, Command& chosen);
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
void add_completion(CLI::App& app, Command& chosen);

/// What a description says up to its first full stop or colon, on one line.
std::string first_sentence(std::string text);

/// Stores the command line of this program; main() calls it once, before any other function of this header.
void remember_command_line(int argc, char** argv);
/// The stored command line on one line, quoted for a shell. Valid until the program ends; empty before
/// remember_command_line().
const std::string& command_line();
/// This program as it was called: a path, or a name in PATH.
const std::string& program();
/// The stored arguments without the program's name. Valid until the program ends.
const std::vector<std::string>& arguments();

}  // namespace plumbline::cli
