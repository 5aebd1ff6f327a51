// Checks the folder of an export: every file exists, is well-formed, and has the bytes that manifest.json pins. For
// users of cases that were sent to them or kept for a long time.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

namespace plumbline::conformance {

struct ExportCheck {
  size_t cases = 0, files = 0;
  /// The errors found, a line each that begins with the file.
  std::vector<std::string> problems;
};

/// Throws InputError if manifest.json itself cannot be read.
ExportCheck check_export(const std::filesystem::path& folder);

}  // namespace plumbline::conformance
