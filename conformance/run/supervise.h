// The supervisor's loop: a job handed to a backend, again and again without what broke it, until nothing of it is left.
#pragma once

#include <filesystem>
#include <string>

#include "conformance/judge/verdict.h"
#include "conformance/protocol/backend.h"

namespace plumbline::conformance {

/// Hears what becomes of each part of a job, by its number in the job.
class JobObserver {
 public:
  virtual ~JobObserver() = default;
  virtual void begins(size_t index) = 0;
  /// It says that it is done, and files are there: judge them.
  virtual void done(size_t index) = 0;
  /// Unsupported (it said so before the run), Error or Timeout.
  virtual void failed(size_t index, Status status, const std::string& reason) = 0;
  /// What went wrong outside of any case.
  virtual void broken(const std::string& reason) = 0;
  /// It could not be talked to at all: the cases that nothing else was said of have not been run.
  virtual void not_started(const std::string& reason) = 0;
};

/// What is there of a case when it is done: result files, or a recording (recording.h) by the same name.
enum class Delivery { Results, Recording };

/// Asks for the plan, then runs what is supported. A case in which the backend crashes, hangs, or says what cannot be
/// read is failed, its processes are ended, and it is started anew with the rest. Every case is heard of once, unless
/// the backend does not start.
void supervise(const Backend& backend, const Job& job, const std::filesystem::path& out, JobObserver& observer,
               Delivery delivery = Delivery::Results);

}  // namespace plumbline::conformance
