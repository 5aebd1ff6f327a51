// The entry point that the programs of plumbline share: parsing of the command line, exit codes, error messages.
#pragma once

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <iostream>
#include <string>
#include <vector>

#include "conformance/protocol/process/surroundings.h"
#include "runtime/error.h"
#include "runtime/text/join.h"
#include "runtime/text/near_names.h"

namespace plumbline::cli {

/// The work of the subcommand that the user chose; returns the exit code.
using Command = std::function<int()>;

/// The path of this executable. Throws std::filesystem::filesystem_error if /proc is not mounted.
inline std::string own_path() { return std::filesystem::read_symlink("/proc/self/exe").string(); }

/// The options of a command, then those of its groups.
inline std::vector<const CLI::Option*> options_of(const CLI::App& command) {
  std::vector<const CLI::Option*> options = command.get_options();
  for (const CLI::App* group : command.get_subcommands([](const CLI::App* app) { return app->get_name().empty(); }))
    for (const CLI::Option* option : options_of(*group)) options.push_back(option);
  return options;
}

/// "; nearest: --profile, --program, --report" if an option on the command line does not exist; else empty.
inline std::string nearest_options(const CLI::App& app) {
  const CLI::App* command = &app;
  while (!command->get_subcommands().empty()) command = command->get_subcommands().front();
  for (const std::string& word : app.remaining(true)) {
    if (!word.starts_with("--")) continue;
    std::vector<std::string> names;
    for (const CLI::Option* option : options_of(*command))
      for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    return "; nearest: " + join(near_names(names, word.substr(0, word.find('='))));
  }
  return "";
}

/// Parses the command line and executes `chosen`, which parsing must have set. `name` is the program's name in the
/// advice "see NAME --help" ("plumbline bench"). Returns the exit code: that of the subcommand; 0 after printing help
/// or the version; 2, and one line on stderr, for bad usage or an InputError; 1, and the message on stderr, for any
/// other exception or if stdout cannot be written. Throws nothing derived from std::exception.
inline int run_chosen(CLI::App& app, const std::string& name, const Command& chosen, int argc, char** argv) {
  const auto fail = [&](std::string what, int code) {
    for (const char* backtrace : {"\nException raised from", "\nframe #0"})  // of LibTorch
      what.resize(std::min(what.find(backtrace), what.size()));
    for (char& c : what)
      if (c == '\n' && code == 2) c = ' ';
    std::fprintf(stderr, "plumbline: %s\n", what.c_str());
    return code;
  };
  const auto written = [&](int code) {
    std::cout.flush();
    return std::cout && std::fflush(stdout) == 0 && std::ferror(stdout) == 0
               ? code
               : fail("standard output cannot be written", 1);
  };
  if (argc > 1 && argv[1][0] != '-') {
    std::vector<std::string> known;
    for (const CLI::App* command : app.get_subcommands({})) known.push_back(command->get_name());
    if (std::find(known.begin(), known.end(), argv[1]) == known.end())
      return fail("no subcommand '" + std::string(argv[1]) + "'; expected one of: " + join(known), 2);
  }
  try {
    app.parse(argc, argv);
    conformance::expect_surroundings();
    return written(chosen());
  } catch (const CLI::Success& wanted) {
    return written(app.exit(wanted));
  } catch (const CLI::ParseError& error) {
    const std::string nearest = dynamic_cast<const CLI::ExtrasError*>(&error) ? nearest_options(app) : "";
    const auto commands = app.get_subcommands();
    const std::string place = commands.empty() ? "" : commands[0]->get_name() + " ";
    return fail(error.what() + nearest + " (see " + name + " " + place + "--help)", 2);
  } catch (const InputError& error) {
    return fail(error.what(), 2);
  } catch (const std::exception& error) {
    return fail(error.what(), 1);
  }
}

}  // namespace plumbline::cli
