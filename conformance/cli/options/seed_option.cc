#include "conformance/cli/options/seed_option.h"

#include "runtime/text/number.h"

namespace plumbline::cli {

CLI::Option* add_seed_option(CLI::App& command, uint64_t& seed, const std::string& help) {
  // CLI11 reads -1 and 2^64 as 2^64 - 1, and 010 as 8.
  const CLI::Validator natural(
      [](const std::string& text) {
        std::string error;
        if (!parse_number<uint64_t>(text) || (text.size() > 1 && text[0] == '0'))
          error = "expected a whole number from 0 to 18446744073709551615, not " + text;
        return error;
      },
      "");
  return command.add_option("--seed", seed, help)->check(natural)->capture_default_str();
}

}  // namespace plumbline::cli
