// The option --skip of `plumbline schedule` and `plumbline simulate`: tensors that skip stages.
#pragma once

#include <CLI/CLI.hpp>

#include <optional>
#include <string>
#include <vector>

#include "runtime/schedule/schedule.h"

namespace plumbline::cli {

/// One value of --skip, FROM-TO or FROM-TO=BYTES.
struct SkipOption {
  std::string text;                  ///< as the user wrote it
  schedule::StageEdge edge = {};     ///< FROM and TO
  std::optional<double> bytes = {};  ///< BYTES; empty: not given
};

/// Adds --skip, whose values are divided at commas; `form` and `help` describe them in --help. Parsing appends the
/// values to `texts`, which must live as long as the command.
void add_skip_option(CLI::App& command, std::vector<std::string>& texts, const std::string& form,
                     const std::string& help);

/// Parses the values of --skip in their order; `count` is the number of stages, and `counted` names them in messages.
/// Throws InputError, one line that begins with `command`, for a malformed text, a TO that is not above FROM or not
/// below `count`, and a repeated pair of FROM and TO.
std::vector<SkipOption> parse_skips(const std::string& command, const std::vector<std::string>& texts, int count,
                                    const std::string& counted = "stages");

}  // namespace plumbline::cli
