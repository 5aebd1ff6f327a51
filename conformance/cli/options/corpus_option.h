// The option --corpus of the subcommands that select cases.
#pragma once

#include <CLI/CLI.hpp>

#include <filesystem>

namespace plumbline::cli {

/// Adds --corpus to `command`, and returns the option. Parsing only stores the folder in `folder`, which must outlive
/// `command`; the caller adds the cases of the folder to the corpus (add_cases()). Under mpirun rank 0's host alone
/// needs the folder.
inline CLI::Option* add_corpus_option(CLI::App& command, std::filesystem::path& folder) {
  return command
      .add_option("--corpus", folder,
                  "Also the cases of your own in this folder: of every *.toml in it (docs/corpus.md)")
      ->type_name("DIR");
}

}  // namespace plumbline::cli
