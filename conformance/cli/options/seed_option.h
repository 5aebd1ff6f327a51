// The option --seed of the commands that draw random numbers.
#pragma once

#include <CLI/CLI.hpp>

#include <cstdint>
#include <string>

namespace plumbline::cli {

/// Adds --seed, whose value goes to `seed`; `help` tells what it is the seed of.
CLI::Option* add_seed_option(CLI::App& command, uint64_t& seed, const std::string& help);

}  // namespace plumbline::cli
