// Cases as data: TOML files with the cases of the corpus (cases/*.toml) or a user's own (--corpus). No torch.
//
//   schema = "plumbline-cases/1"
//
//   [[case]]
//   id = "my-uneven"
//   title = "eight layers, 11 rows over 4 micro-batches"
//   why = "the last micro-batch taken for as large as the first"
//   model = "mlp"
//   loss = {kind = "mse", reduction = "mean"}
//   rows = 11
//
// The keys are the fields of reference::Case (reference/case.h) under their names; those above are required, except
// `rows`. `truth` is exact by default for models exact-..., same-order for others. Step kinds, loss kinds and
// optimizers have the names of case.json (INTERPRETING.md). A step is a name or, with details, a table; `repeat_steps`
// repeats the whole list. `schedule` names a CSV in the file's table [schedules].
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "reference/case.h"

namespace plumbline::conformance {

/// The cases of several files, in the order of reading.
class CaseFiles {
 public:
  /// Adds the cases of a file; `file` names it in errors. Throws InputError of one line with file, line, mistake and
  /// accepted values: for an unknown key, a missing one, a value of another type or out of range, an unknown name, an
  /// id that a case of this or an earlier file has, a schedule that is malformed, cannot run or is for another number
  /// of micro-batches, and for fields that contradict each other. Whether an exact case is exact is not checked here:
  /// the judge proves it.
  void read(const std::string& text, const std::string& file);

  const std::vector<reference::Case>& cases() const { return cases_; }

 private:
  std::vector<reference::Case> cases_;
  std::map<std::string, std::string> places_;  ///< by id: "file.toml:12"
};

/// The files of a user's folder: its *.toml, in alphabetical order. Throws InputError if there are none.
std::vector<std::filesystem::path> case_files(const std::filesystem::path& folder);

}  // namespace plumbline::conformance
