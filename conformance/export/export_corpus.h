// Exports many cases as folders of files, with an index and the lock file that pins their bytes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "conformance/protocol/chosen_schedule.h"
#include "reference/case.h"

namespace plumbline::conformance {

struct ExportRequest {
  std::vector<reference::Case> cases;
  std::vector<ChosenSchedule> schedules;  ///< a case with a built-in schedule is exported under that one only
  int ranks = 4;
  uint64_t seed = 1;
  bool expected = false;  ///< also write the expected results
  std::filesystem::path out;
};

struct ExportedFile {
  std::string name;
  uint64_t bytes = 0;
  std::string sha256;
  /// Whether the bytes are the same on every machine.
  bool pinned = false;
};

struct ExportedCase {
  std::string id = {};
  std::string schedule = {};
  reference::Truth truth = reference::Truth::Exact;
  int ranks = 0;
  int stages = 0;
  std::string folder = {};   ///< relative to the output folder
  std::string refused = {};  ///< why it was not exported; empty if it was
  std::vector<ExportedFile> files = {};
};

/// Exports every case under every schedule to "ID/SCHEDULE-RANKS" and writes manifest.json. Calls `say` after each
/// export. A case that cannot be exported, or not under that schedule, is refused, and the export continues. Throws
/// InputError if `out` cannot be written to.
std::vector<ExportedCase> export_cases(const ExportRequest& request,
                                       const std::function<void(const ExportedCase&)>& say);

/// A line "SHA256  FOLDER/FILE" for each file whose bytes are the same on every machine, sorted by name, as sha256sum
/// -c
/// reads it. Whole numbers come from integer arithmetic only; real data depend on the machine's logarithm and cosine.
std::string lock_text(const std::vector<ExportedCase>& cases);

/// The differences between the lock file's text and the present one, a line for each file; empty if they are equal.
std::vector<std::string> lock_differences(const std::string& locked, const std::string& present);

}  // namespace plumbline::conformance
