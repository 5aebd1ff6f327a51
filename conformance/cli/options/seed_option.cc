#include "conformance/cli/options/seed_option.h"

namespace plumbline::cli {

CLI::Option* add_seed_option(CLI::App& command, uint64_t& seed, const std::string& help) {
  // CLI11 reads -1 as 2^64 - 1.
  const CLI::Validator natural(
      [](const std::string& text) {
        std::string error;
        if (text.starts_with('-')) error = "expected a whole number from 0 on, not " + text;
        return error;
      },
      "");
  return command.add_option("--seed", seed, help)->check(natural)->capture_default_str();
}

}  // namespace plumbline::cli
