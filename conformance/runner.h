// The runner: from what the user asked for to a report. It starts the ranks, judges each case as its results arrive,
// and goes on after a crash with the cases that are left.
#pragma once

#include <filesystem>
#include <iosfwd>
#include <string>
#include <vector>

#include "conformance/backend/job.h"
#include "conformance/report/report.h"
#include "reference/case.h"

namespace plumbline {

enum class TransportKind { Threads, Mpi };

struct RunOptions {
  std::string profile = "core";
  std::string case_glob;  ///< empty: the whole profile
  std::string schedule_glob = "*";
  bool schedule_given = false;
  TransportKind transport = TransportKind::Threads;
  bool transport_given = false;  ///< the user named one; under mpirun it must be mpi
  int ranks = 4;
  bool ranks_given = false;  ///< the user named a number; under mpirun it must be mpirun's
  int microbatches = 0;      ///< 0: each case's own
  std::string mutant;
  std::string recompute = "never";  ///< see parse_recompute()
  uint64_t seed = 1;
  double timeout_seconds = 60;
  bool throughput = true;
  std::filesystem::path report = "plumbline-report";
  std::string program;       ///< this executable, to start ranks with
  std::string command_line;  ///< for the report
};

/// The schedules whose name matches a shell pattern; throws InputError when none does.
std::vector<std::string> matching_schedules(const std::string& glob);

/// "threads" or "mpi".
std::string transport_name(TransportKind kind);

/// The schedules whose names match a pattern; throws InputError when none does.
std::vector<std::string> matching_schedules(const std::string& glob);

/// What a run consists of, checked before anything starts: throws InputError for an unknown case, schedule or mutant,
/// for numbers out of range, and for more stages than a model's split points allow.
Job make_job(const RunOptions& options);

/// Starts the ranks outside of this process (mpirun, or a process with threads), judges, reports to `out`, and writes
/// the report folder. Returns the exit code.
int run_supervised(const RunOptions& options, std::ostream& out);

/// Under mpirun: this process is a rank. Rank 0 judges and reports to `out`; all return its exit code. `ranks` must be
/// the size of the MPI job.
int run_inside_mpi(const RunOptions& options, std::ostream& out);

}  // namespace plumbline
