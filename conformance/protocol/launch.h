// A backend outside of this process: its verbs, and hearing how far it is with a job.
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

/// What mpirun and the ranks find in their environment: the settings of the launchers of Open MPI 4 and 5 and of MPICH
/// at once; each reads its own and ignores the rest.
std::map<std::string, std::string> rank_environment();

/// What rank 0 of the job reports: case or measurement `index` begins, or is done, or (a case) could not be done.
struct LaunchEvent {
  bool throughput = false;
  size_t index = 0;
  bool done = false;        ///< it is over, in whatever way
  std::string failed = {};  ///< why the case could not be done; empty otherwise
};

/// What a backend said cannot be read as an event, or cannot be.
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
  std::string output = {};  ///< what it printed to stdout, without the events
  std::string errors = {};  ///< and to stderr
};

/// In one line, a rank's own reason first: what it says behind "plumbline: ", else the first exception that it names,
/// else its last words; and how it ended.
std::string reason_of(const LaunchResult& result);

/// Prefix of event lines on a backend's standard output.
inline constexpr std::string_view kEventPrefix = "@plumbline ";

/// A backend cannot be talked to: it does not start, ends badly, or its answer is none. One line, opened by its name
/// and the verb.
class BackendError : public Error {
 public:
  using Error::Error;
};

/// Starts a backend for each verb.
class Launcher {
 public:
  explicit Launcher(BackendSpec spec) : spec_(std::move(spec)) {}
  const BackendSpec& spec() const { return spec_; }

  /// What it says of itself. Throws BackendError.
  BackendDescription describe() const;

  /// Writes OUT/job.json and asks which of its cases it can run: an answer for each, none where it gave none. Throws
  /// BackendError.
  std::vector<std::optional<PlanAnswer>> plan(const Job& job, const std::filesystem::path& out) const;

  /// Writes OUT/job.json and runs it to its end. What `on_event` throws, and an event that cannot be read, ends the
  /// backend; the first is thrown on.
  LaunchResult run(const Job& job, const std::filesystem::path& out,
                   const std::function<void(const LaunchEvent&)>& on_event) const;

 private:
  std::string answer(const std::string& verb, const std::string& job) const;

  BackendSpec spec_;
};

}  // namespace plumbline::conformance
