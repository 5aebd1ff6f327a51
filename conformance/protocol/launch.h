// Runs a backend in a child process: its verbs, and its progress events during a job.
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

/// Environment variables for mpirun and the ranks: the settings for Open MPI 4, Open MPI 5 and MPICH together; each
/// reads its own and ignores the rest.
std::map<std::string, std::string> rank_environment();

/// A report from rank 0 of the job: case or measurement `index` begins, is done, or (a case only) failed.
struct LaunchEvent {
  bool throughput = false;
  size_t index = 0;
  bool done = false;        ///< it is over, also if it failed
  std::string failed = {};  ///< why the case could not be executed; empty otherwise
};

/// An event of a backend is malformed, or has an impossible index.
class BadEvent : public Error {
 public:
  using Error::Error;
};

/// "case 3 done", "case 3 failed: out of memory"; throws BadEvent for anything else.
LaunchEvent parse_event(std::string_view line);

struct LaunchResult {
  bool succeeded = false;
  bool timed_out = false;
  bool any_event = false;
  std::string ending = {};  ///< "exited with code 1"
  std::string output = {};  ///< its standard output, without the events
  std::string errors = {};  ///< its standard error
};

/// The reason of a failure in one line: a rank's text after "plumbline: ", else the first exception that it names, else
/// its last line; and how the backend ended.
std::string reason_of(const LaunchResult& result);

/// Prefix of event lines on a backend's standard output.
inline constexpr std::string_view kEventPrefix = "@plumbline ";

/// A backend does not start, fails, or gives a malformed answer. One line, which starts with its name and the verb.
class BackendError : public Error {
 public:
  using Error::Error;
};

/// Starts a backend for each verb.
class Launcher {
 public:
  explicit Launcher(BackendSpec spec) : spec_(std::move(spec)) {}
  const BackendSpec& spec() const { return spec_; }

  /// The backend's description of itself. Throws BackendError.
  BackendDescription describe() const;

  /// Writes OUT/job.json and asks the backend which cases it supports: one answer for each, none for a case that it
  /// left out. Throws BackendError.
  std::vector<std::optional<PlanAnswer>> plan(const Job& job, const std::filesystem::path& out) const;

  /// Writes OUT/job.json and runs it to its end. An exception from `on_event` and a malformed event end the backend;
  /// the
  /// former is rethrown.
  LaunchResult run(const Job& job, const std::filesystem::path& out,
                   const std::function<void(const LaunchEvent&)>& on_event) const;

 private:
  std::string answer(const std::string& verb, const std::string& job) const;

  BackendSpec spec_;
};

}  // namespace plumbline::conformance
