// The folder of an export looked through: whether every file is there, is of a form that is known, and is what
// manifest.json pins. For whoever was sent cases, or has kept them for long.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

namespace plumbline::conformance {

struct ExportCheck {
  size_t cases = 0, files = 0;
  /// What is wrong, a line each that begins with the file.
  std::vector<std::string> problems;
};

/// InputError when manifest.json itself cannot be read.
ExportCheck check_export(const std::filesystem::path& folder);

}  // namespace plumbline::conformance
