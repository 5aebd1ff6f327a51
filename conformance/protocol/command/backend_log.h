// What a backend prints while it runs a job, kept for its user in the files backend.log of the job's output folder: one
// for each case, and one for the time outside of the cases.
#pragma once

#include <filesystem>
#include <optional>
#include <string_view>

#include "conformance/protocol/backend.h"
#include "conformance/protocol/job.h"
#include "conformance/protocol/process/capped_text.h"

namespace plumbline::conformance {

class BackendLog {
 public:
  /// Each file keeps at most so many bytes of one launch, and says how many it left out.
  static constexpr size_t kLimit = 1 << 17;

  /// `job` outlives the log; `out` is its output folder.
  BackendLog(const Job& job, std::filesystem::path out) : job_(job), out_(std::move(out)) {}
  /// Writes the file of a case that did not end, and appends to that of the time outside of the cases.
  ~BackendLog();
  BackendLog(const BackendLog&) = delete;
  BackendLog& operator=(const BackendLog&) = delete;

  /// Text after the begin of a case belongs to it, until its end.
  void saw(const JobEvent& event);
  /// Text of standard output without its events, or of standard error.
  void add(std::string_view text);

 private:
  void end_case();

  const Job& job_;
  std::filesystem::path out_;
  std::optional<size_t> current_;  ///< the case that runs
  CappedText of_case_{kLimit}, outside_{kLimit};
};

}  // namespace plumbline::conformance
