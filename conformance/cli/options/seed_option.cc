#include "conformance/cli/options/seed_option.h"

#include <charconv>
#include <system_error>

namespace plumbline::cli {

CLI::Option* add_seed_option(CLI::App& command, uint64_t& seed, const std::string& help) {
  // CLI11 reads -1 and 2^64 as 2^64 - 1, and 010 as 8.
  const CLI::Validator natural(
      [](const std::string& text) {
        uint64_t number = 0;
        const auto [end, wrong] = std::from_chars(text.data(), text.data() + text.size(), number);
        const bool is_decimal = wrong == std::errc() && end == text.data() + text.size();
        std::string error;
        if (!is_decimal || (text.size() > 1 && text[0] == '0'))
          error = "expected a whole number from 0 to 18446744073709551615, not " + text;
        return error;
      },
      "");
  return command.add_option("--seed", seed, help)->check(natural)->capture_default_str();
}

}  // namespace plumbline::cli
