// The option --corpus of the subcommands that select cases.
#pragma once

#include <CLI/CLI.hpp>

#include <filesystem>
#include <string>

#include "conformance/corpus/corpus.h"

namespace plumbline::cli {

/// Adds --corpus. Parsing adds the folder's cases to the corpus and stores the folder in `folder`, which must live as
/// long as the command.
inline CLI::Option* add_corpus_option(CLI::App& command, std::filesystem::path& folder) {
  return command
      .add_option_function<std::string>(
          "--corpus",
          [&folder](const std::string& given) {
            conformance::add_cases(given);
            folder = given;
          },
          "Also the cases of your own in this folder: of every *.toml in it (docs/corpus.md)")
      ->type_name("DIR");
}

}  // namespace plumbline::cli
