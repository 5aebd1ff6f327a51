// Judges a result folder again, from its files alone.
//
// run.json lists the runs, results/ holds the files of their ranks, results.jsonl or report.json the recorded verdicts.
// Every run that left results is judged again by the oracles, computed here; a run without results (a crash, a
// time-out, "unsupported"; a pass under `--keep failures`) keeps its recorded verdict; a backend's custom models are
// compared with their runs on one rank again. The folder is sound when every verdict is the recorded one and no file is
// missing, unreadable or unexpected.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "conformance/report/report.h"
#include "runtime/error.h"

namespace plumbline::conformance {

struct CheckOptions {
  std::filesystem::path folder;
  std::string profile;    ///< every run of it must be present; empty: those of run.json
  std::string case_glob;  ///< only these, patterns as of select(); empty: all
};

struct CheckResult {
  std::vector<Verdict> verdicts;  ///< in the order of run.json
  /// Why the folder is not sound, a line each that names the file: a result that cannot be read or is missing, an
  /// unexpected file, a verdict that differs from the recorded one.
  std::vector<std::string> problems;
  /// Failures outside of the cases that the run recorded (RunReport::broken).
  std::vector<std::string> broken;
  /// Runs of the profile that the folder lacks, by name.
  std::vector<std::string> missing;
  /// How many passes are taken as recorded, since the run has deleted their results (`--keep failures`).
  int as_recorded = 0;
  /// How many runs it has beyond the profile.
  int beyond_profile = 0;
  /// Remarks that are no problems, a line each: that the run had another LibTorch.
  std::vector<std::string> notes;
};

/// This machine lacks the device of the runs, on which their results must be judged. One line; the program exits with
/// code 3.
class CannotCheckHere : public Error {
 public:
  using Error::Error;
};

/// Throws InputError of one line for a folder that cannot be checked at all: run.json is missing or malformed,
/// report.json or results.jsonl is malformed, a profile or case is unknown. Throws CannotCheckHere.
CheckResult check_folder(const CheckOptions& options);

/// 2 for problems; 1 for failures, also outside of the cases, and for missing runs of the profile; 3 when a run was not
/// run, or none passed; else 0.
int exit_code(const CheckResult& result);

}  // namespace plumbline::conformance
