// The options that select runs, with the defaults that --help shows.
#pragma once

#include <CLI/CLI.hpp>

#include <algorithm>
#include <string>
#include <vector>

#include "conformance/plan/plan.h"

namespace plumbline::cli {

struct NamedRuns {
  std::string profile = conformance::Selection().profile_or_default();
  std::string schedules = "*";
  conformance::TransportKind transport = conformance::Selection().transport_or_default();
  std::vector<int> ranks;

  /// --ranks, one number or several with commas between, each from 1 to `most`.
  CLI::Option* add_ranks(CLI::App& command, int most, const std::string& what) {
    return command.add_option("--ranks", ranks, what)
        ->delimiter(',')
        ->allow_extra_args(false)
        ->check(CLI::Range(1, most).description(""))
        ->type_name("N");
  }

  /// Copies the options that the command line names; the rest of `selection` stays as it is.
  void select(const CLI::App& command, conformance::Selection& selection) const {
    const auto named = [&](const char* name) {
      const CLI::Option* option = command.get_option_no_throw(name);
      return option != nullptr && option->count() > 0;
    };
    if (named("--profile")) selection.profile = profile;
    if (named("--schedule")) selection.schedules = schedules;
    if (named("--transport")) selection.transport = transport;
    if (named("--ranks")) {
      selection.ranks = ranks;
      std::ranges::sort(selection.ranks);
      const auto repeated = std::ranges::unique(selection.ranks);
      selection.ranks.erase(repeated.begin(), repeated.end());
    }
  }
};

}  // namespace plumbline::cli
