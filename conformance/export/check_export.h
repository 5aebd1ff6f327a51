// Checks an exported folder that was copied or kept for a long time: every file that manifest.json lists exists, is
// well-formed and has the recorded size and SHA-256, manifest.json describes each case as its case.json does, and the
// folders of the cases contain no other file.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

namespace plumbline::conformance {

struct ExportCheck {
  size_t cases = 0, files = 0;  ///< listed in manifest.json
  /// The errors, one line each, beginning with the path of the file. Empty: the export is intact.
  std::vector<std::string> problems;
};

/// Checks the export in `folder`. Throws InputError if manifest.json cannot be read, is malformed or of another format,
/// names a path outside the folder, or lists a case without one of the four files that every case has.
ExportCheck check_export(const std::filesystem::path& folder);

}  // namespace plumbline::conformance
