// Exports many cases as folders of files, with an index and the lock file that pins their bytes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "conformance/protocol/schedule/chosen_schedule.h"
#include "reference/case.h"

namespace plumbline::conformance {

/// The format that manifest.json declares.
inline constexpr const char* kManifestFormat = "plumbline-manifest/1";

struct ExportRequest {
  std::vector<reference::Case> cases;
  std::vector<ChosenSchedule> schedules;  ///< ignored for a case with a built-in schedule
  int ranks = 4;                          ///< likewise: a built-in schedule has its own number of ranks
  uint64_t seed = 1;
  bool expected = false;      ///< also write the expected results (expected.h)
  std::filesystem::path out;  ///< the folder of the export, created if necessary
};

struct ExportedFile {
  std::string name;  ///< relative to ExportedCase::folder
  uint64_t bytes = 0;
  std::string sha256;
  /// Whether the bytes are the same on every machine.
  bool pinned = false;
};

/// One case under one schedule.
struct ExportedCase {
  std::string id = {};
  std::string schedule = {};  ///< for a file, its name without folder and ".csv"
  reference::Truth truth = reference::Truth::Exact;
  int ranks = 0;
  int stages = 0;
  std::string folder = {};   ///< relative to the output folder
  std::string refused = {};  ///< the reason why the case was not exported; empty if it was
  std::vector<ExportedFile> files = {};
};

/// Exports every case under every schedule to the folder "ID/SCHEDULE-RANKS" of `out`, whose previous contents it
/// deletes, and then writes manifest.json. Calls `say` after each case and schedule. A case that cannot be exported
/// under a schedule is recorded as refused, and the export continues. Throws InputError if two schedules have the same
/// name or `out` cannot be created, and WriteError if a file cannot be written.
std::vector<ExportedCase> export_cases(const ExportRequest& request,
                                       const std::function<void(const ExportedCase&)>& say);

/// Returns the lock file: a line "SHA256  FOLDER/FILE" for each pinned file, sorted by path, in the format of
/// `sha256sum -c`. case.json, program.json and schedule.csv are pinned, tensors only for exact cases: integer-valued
/// data come from integer arithmetic, while real data depend on the machine's logarithm and cosine.
std::string lock_text(const std::vector<ExportedCase>& cases);

/// Compares two lock files. Returns one line for each file that differs or occurs in one of them only; empty if the
/// lock files are equal.
std::vector<std::string> lock_differences(const std::string& locked, const std::string& present);

}  // namespace plumbline::conformance
