// The options that the subcommands of `plumbline bench peers` share. Each function adds one with its range; `meaning`
// is the help text, in which the subcommands differ.
#pragma once

#include <CLI/CLI.hpp>

#include <string>
#include <vector>

namespace plumbline::bench {

void add_python(CLI::App& command, std::string& python, const std::string& meaning);
void add_models(CLI::App& command, std::vector<std::string>& models, const std::string& meaning);
void add_rounds(CLI::App& command, int& rounds, const std::string& meaning);
void add_threads(CLI::App& command, int& threads, const std::string& meaning);
void add_seconds(CLI::App& command, double& seconds, const std::string& meaning);

}  // namespace plumbline::bench
