// Starting the ranks of a job outside of this process, and hearing how far they are.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "conformance/backend/job.h"

namespace plumbline {

/// What mpirun and the ranks find in their environment: the settings of the launchers of Open MPI 4 and 5 and of MPICH
/// at once; each reads its own and ignores the rest.
std::map<std::string, std::string> rank_environment();

/// What rank 0 of the job reports: case or measurement `index` begins, or is done.
struct LaunchEvent {
  bool throughput = false;
  size_t index = 0;
  bool done = false;
};

/// "case 3 done"; throws Error for anything else.
LaunchEvent parse_event(std::string_view line);

struct LaunchResult {
  bool succeeded = false;
  bool timed_out = false;
  std::string ending;  ///< "exited with code 1"
  std::string output;  ///< without the events
};

/// Prefix of event lines on a backend's standard output.
inline constexpr std::string_view kEventPrefix = "@plumbline ";

class Launcher {
 public:
  /// `program` is the plumbline executable. With `mpi`, ranks are processes under mpirun, else threads of one process.
  Launcher(std::string program, bool mpi, int ranks) : program_(std::move(program)), mpi_(mpi), ranks_(ranks) {}

  /// Runs `plumbline backend run` to its end. `silence` is how long it may go without a sign of life.
  LaunchResult run(const Job& job, const std::filesystem::path& out, std::chrono::duration<double> silence,
                   const std::function<void(const LaunchEvent&)>& on_event) const;

 private:
  std::string program_;
  bool mpi_;
  int ranks_;
};

}  // namespace plumbline
