// A check of options whose values are the words of a list.
#pragma once

#include <CLI/CLI.hpp>

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace plumbline::cli {

/// Accepts `words` only. It adds nothing to the help, where the option's type names them.
inline CLI::Validator one_of(std::span<const std::string_view> words) {
  return CLI::IsMember(std::vector<std::string>(words.begin(), words.end())).description("");
}

}  // namespace plumbline::cli
