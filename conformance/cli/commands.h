// The subcommands of `plumbline`: each function adds one to the parser. If the user names it, parsing sets `chosen`, to
// which the parser keeps a reference. Also what they know about the command line. No torch.
#pragma once

#include "conformance/cli/actions.h"
#include "conformance/cli/entry.h"

namespace plumbline::cli {

void add_list(CLI::App& app, Command& chosen);
void add_schedule(CLI::App& app, Command& chosen);
void add_simulate(CLI::App& app, Command& chosen);
void add_report(CLI::App& app, Command& chosen);
void add_bench(CLI::App& app, Command& chosen);
void add_completion(CLI::App& app, Command& chosen);
/// `read_program` traces the joint graph of a program's stage, for which it needs LibTorch.
void add_partition(CLI::App& app, Command& chosen, ProgramReader read_program);
void add_run(CLI::App& app, Command& chosen, const Actions& actions);
void add_prove(CLI::App& app, Command& chosen, const Actions& actions);
void add_mutants(CLI::App& app, Command& chosen, const Actions& actions);
void add_split(CLI::App& app, Command& chosen, const Actions& actions);
void add_export(CLI::App& app, Command& chosen, const Actions& actions);
void add_backend(CLI::App& app, Command& chosen, const Actions& actions);
void add_check(CLI::App& app, Command& chosen, const Actions& actions);
void add_doctor(CLI::App& app, Command& chosen, const Actions& actions);

/// Parses the command line of this program, stores it for the functions below, and executes its subcommand. Returns the
/// exit code.
int run_command_line(int argc, char** argv, const Actions& actions);

/// What a description says up to its first full stop or colon, on one line.
std::string first_sentence(std::string text);

/// Stores the command line; run_command_line() calls it once, before the functions that follow.
void remember_command_line(int argc, char** argv);
/// The stored command line on one line, quoted for a shell. Valid until the program ends; empty before
/// remember_command_line().
const std::string& command_line();
/// This program as it was called: a path, or a name in PATH.
const std::string& program();
/// The stored arguments without the program's name. Valid until the program ends.
const std::vector<std::string>& arguments();
/// The arguments of main(), with `plumbline help X` changed to `plumbline X --help`. Valid until the program ends.
std::vector<char*> with_help_last(int argc, char** argv);

/// Replaces this process by the executable `name` in its folder; `words` begin with argv[0]. Throws InputError, which
/// ends with `what_makes_it`, if it cannot be executed.
[[noreturn]] void execute_beside(const std::string& name, std::vector<std::string> words,
                                 const std::string& what_makes_it);

}  // namespace plumbline::cli
