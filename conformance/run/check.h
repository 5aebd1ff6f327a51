// A result folder judged again from its files, as somebody does who was not there when it was written.
//
// run.json says which runs there should be, results/ holds what their ranks left, results.jsonl or report.json what the
// run said of them. Every run that left results is judged anew by the oracles, computed here; what ended without
// results (a crash, a time-out, "unsupported") stays as recorded; a backend's own models are held against their runs on
// one rank again. The folder is good when every verdict is the recorded one and nothing is missing, unreadable or too
// much.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "conformance/report/report.h"

namespace plumbline::conformance {

struct CheckOptions {
  std::filesystem::path folder;
  std::string profile;    ///< every run of it must be there; empty: what run.json says is enough
  std::string case_glob;  ///< only these; empty: all
};

struct CheckResult {
  std::vector<Verdict> verdicts;  ///< in the order of run.json
  /// What makes the folder no sound record, a line each that names the file: a result that cannot be read or is
  /// missing, a file too much, a verdict that is not the recorded one.
  std::vector<std::string> problems;
  /// Runs of the profile that the folder has not, by name.
  std::vector<std::string> missing;
  /// How many runs it has beyond the profile.
  int beyond_profile = 0;
  /// What is worth telling: another LibTorch than the run's.
  std::vector<std::string> notes;
};

/// Throws InputError of one line for a folder that cannot be checked at all: no run.json, or one that is none; a
/// report.json or results.jsonl that is none; an unknown profile or case.
CheckResult check_folder(const CheckOptions& options);

/// 2 for problems; 1 for failures and for what is missing of the profile; 3 when something was not run, or nothing
/// passed; else 0.
int exit_code(const CheckResult& result);

}  // namespace plumbline::conformance
