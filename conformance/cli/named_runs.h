// The options that select runs, with the defaults that --help shows.
#pragma once

#include <CLI/CLI.hpp>

#include <string>

#include "conformance/plan/plan.h"

namespace plumbline::cli {

struct NamedRuns {
  std::string profile = conformance::Selection().profile_or_default();
  std::string schedules = "*";
  conformance::TransportKind transport = conformance::Selection().transport_or_default();
  int ranks = conformance::Selection().ranks_or_default();

  /// Copies the options that the command line names; the rest of `selection` stays as it is.
  void select(const CLI::App& command, conformance::Selection& selection) const {
    const auto named = [&](const char* name) {
      const CLI::Option* option = command.get_option_no_throw(name);
      return option != nullptr && option->count() > 0;
    };
    if (named("--profile")) selection.profile = profile;
    if (named("--schedule")) selection.schedules = schedules;
    if (named("--transport")) selection.transport = transport;
    if (named("--ranks")) selection.ranks = ranks;
  }
};

}  // namespace plumbline::cli
