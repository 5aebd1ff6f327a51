// The supervisor's loop: runs a job on a backend, and after a failure again without the case that failed, until every
// case has a verdict.
#pragma once

#include <filesystem>
#include <string>

#include "conformance/judge/verdict/verdict.h"
#include "conformance/protocol/backend.h"

namespace plumbline::conformance {

/// Receives the outcome of each case of a job, by its index in the job.
class JobObserver {
 public:
  virtual ~JobObserver() = default;
  virtual void begins(size_t index) = 0;
  /// The backend reported it as done, and its files exist.
  virtual void done(size_t index) = 0;
  /// Unsupported (by its plan), Error or Timeout.
  virtual void failed(size_t index, Status status, const std::string& reason) = 0;
  /// An error outside of any case.
  virtual void broken(const std::string& reason) = 0;
  /// The backend did not start: cases without an outcome have not been run.
  virtual void not_started(const std::string& reason) = 0;
};

/// The files of a finished case: results, or a recording (recording.h) of the same name.
enum class Delivery { Results, Recording };

/// Asks for the plan, then runs the supported cases, whose results of an earlier attempt are removed before. When the
/// backend crashes, hangs, or prints an event that cannot be parsed, its case fails, its processes are killed, and it
/// is started again with the remaining cases. Every case has one outcome, unless the backend does not start (again) or
/// repeats an event. Precondition: JobCase::results is empty.
void supervise(const Backend& backend, const Job& job, const std::filesystem::path& out, JobObserver& observer,
               Delivery delivery = Delivery::Results);

}  // namespace plumbline::conformance
