// Backend: executes cases. The verbs are those of INTERPRETING.md, "Protocol". Two implementations: the runtime in this
// process (backend/runtime.h), and a program that is started for each verb (command_backend.h).
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/protocol/job.h"
#include "conformance/protocol/protocol.h"
#include "runtime/error.h"

namespace plumbline::conformance {

/// What rank 0 of a job reports: case or measurement `index` of the job begins, is done, or (a case) failed.
struct JobEvent {
  bool throughput = false;
  size_t index = 0;
  bool done = false;        ///< it is over, in whatever way
  std::string failed = {};  ///< why the case failed; empty otherwise

  bool operator==(const JobEvent&) const = default;
};

/// An event that cannot be parsed, or that contradicts the job or an earlier event.
class BadEvent : public Error {
 public:
  using Error::Error;
};

/// An event that came before in the same run of the backend, or that shares its line with another. Mostly two
/// processes act as rank 0.
class RepeatedEvent : public BadEvent {
 public:
  using BadEvent::BadEvent;
};

/// "case 3 begins", "case 3 failed: out of memory", "throughput 0 done".
std::string to_string(const JobEvent& event);
/// The inverse; throws BadEvent for anything else.
JobEvent parse_event(std::string_view line);

struct JobResult {
  bool succeeded = false;
  bool timed_out = false;
  bool any_event = false;
  std::string ending = {};  ///< "exited with code 1"
  std::string output = {};  ///< standard output without the events
  std::string errors = {};  ///< standard error
  /// What this machine lacks to run ranks, if the run failed without an event or timed out; mostly empty.
  std::string lack = {};
  bool repeated_event = false;  ///< a RepeatedEvent ended the run
  /// The first line of standard output in which other words precede an event, so that it is none; mostly empty.
  std::string hidden_event = {};
};

/// The backend does not start, fails, or gives an answer that cannot be parsed. One line, opened by its name and the
/// verb.
class BackendError : public Error {
 public:
  using Error::Error;
};

using OnEvent = std::function<void(const JobEvent&)>;

class Backend {
 public:
  virtual ~Backend() = default;

  /// For people; known before it has described itself.
  virtual std::string name() const = 0;

  /// Name, version and abilities. Throws BackendError.
  virtual BackendDescription describe() const = 0;

  /// For each case of the job: supported, or why not; nullopt where it gave no answer. `out` is the job's folder.
  /// Throws BackendError.
  virtual std::vector<std::optional<PlanAnswer>> plan(const Job& job, const std::filesystem::path& out) const = 0;

  /// Executes the job; results go to files below `out` (report_folder.h). An exception of `on_event` ends the run and
  /// is rethrown; BadEvent ends it with a JobResult that says so.
  virtual JobResult run(const Job& job, const std::filesystem::path& out, const OnEvent& on_event) const = 0;
};

}  // namespace plumbline::conformance
