// Runs a backend in a child process: asks it to describe itself, to plan a job, and to run a job with progress events.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "conformance/protocol/backend_file.h"
#include "conformance/protocol/job.h"
#include "conformance/protocol/protocol.h"
#include "runtime/error.h"

namespace plumbline::conformance {

/// Environment variables for mpirun and the ranks: one OpenMP thread for each rank, and settings for Open MPI 4 and 5,
/// which other MPI libraries ignore.
std::map<std::string, std::string> rank_environment();

/// A progress event from the backend: a case or measurement begins, is done, or (a case only) failed.
struct LaunchEvent {
  bool throughput = false;  ///< a measurement, not a case
  size_t index = 0;         ///< in Job::throughput or Job::cases
  bool done = false;        ///< false: it begins; true: it has ended, successfully or not
  std::string failed = {};  ///< the reason why the case could not be executed, one line; empty otherwise
};

/// An event is malformed, or its index is not in the job.
class BadEvent : public Error {
 public:
  using Error::Error;
};

/// Parses an event line without its prefix: "case 3 begins", "case 3 done", "case 3 failed: out of memory",
/// "throughput 0 begins", "throughput 0 done". Throws BadEvent for any other text.
LaunchEvent parse_event(std::string_view line);

struct LaunchResult {
  bool succeeded = false;   ///< the backend exited with code 0 before its deadlines, and all events were valid
  bool timed_out = false;   ///< a deadline passed
  bool any_event = false;   ///< at least one valid event arrived
  std::string ending = {};  ///< "exited with code 1", the deadline that passed, or the error in an event
  std::string output = {};  ///< standard output without the event lines
  std::string errors = {};  ///< standard error
};

/// Returns the reason of a failure in one line: the first text that begins with "plumbline: "; after a time-out, the
/// deadline that passed; else the first exception that standard error names, torchrun's or mpirun's report on a rank,
/// or the last line of standard error, followed by the ending.
std::string reason_of(const LaunchResult& result);

/// The prefix of event lines on a backend's standard output.
inline constexpr std::string_view kEventPrefix = "@plumbline ";

/// A backend does not start, fails, or gives a malformed answer. The text is one line that starts with the backend's
/// name and the verb.
class BackendError : public Error {
 public:
  using Error::Error;
};

/// Starts one child process of the backend for each call.
class Launcher {
 public:
  explicit Launcher(BackendSpec spec) : spec_(std::move(spec)) {}
  const BackendSpec& spec() const { return spec_; }

  /// The backend's description of itself. Throws BackendError.
  BackendDescription describe() const;

  /// Writes job.json into `out`, which is created if necessary, and asks the backend which cases it supports. The
  /// answers are indexed as Job::cases; nullopt: the backend did not answer for this case. Throws BackendError.
  std::vector<std::optional<PlanAnswer>> plan(const Job& job, const std::filesystem::path& out) const;

  /// Writes job.json into `out`, which is created if necessary, and runs the backend to its end. `on_event` is called
  /// in this thread for each event as it arrives, but not after a deadline has passed. An exception from `on_event`
  /// ends the backend and is rethrown. A malformed event or a passed deadline (BackendSpec) ends the backend, too;
  /// LaunchResult::ending states the reason.
  LaunchResult run(const Job& job, const std::filesystem::path& out,
                   const std::function<void(const LaunchEvent&)>& on_event) const;

 private:
  std::string answer(const std::string& verb, const std::string& job) const;

  BackendSpec spec_;
};

}  // namespace plumbline::conformance
