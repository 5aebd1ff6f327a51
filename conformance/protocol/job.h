// A job: what the supervisor asks of a backend, as a file that any language can read.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace plumbline::conformance {

struct JobCase {
  std::string id;
  std::string schedule;  ///< a name, or the path of the file that held `csv`
  std::string csv = {};  ///< the schedule itself, where it is none of the named ones
  /// Where the exported case lies, from the job file's folder; empty: a backend that knows the corpus goes by `id`.
  std::string folder = {};
  /// What the names of its result files begin with, below the output folder; see result_path() in report_folder.h.
  /// Empty in a job that has not been written yet.
  std::string results = {};
};

/// One measurement of speed.
struct JobThroughput {
  std::string schedule = {};
  /// A model of the zoo; empty: stages that sleep.
  std::string model = {};
  double forward_ms = 0, backward_ms = 0;
  int rows = 0;
  int microbatches = 0;
  int steps = 0;
  bool trace = false;  ///< the times of each action as well, of the last step
};

struct Job {
  int ranks = 1;
  uint64_t seed = 0;
  /// How long one wait for a message may last.
  double timeout_seconds = 60;
  /// In place of each case's own number; 0: the case's own.
  int microbatches = 0;
  /// A fault to put in on purpose; empty: none.
  std::string mutant = {};
  /// Which micro-batches' stages are recomputed in the backward; see parse_recompute().
  std::string recompute = "never";
  /// What stages save and what they run again, by whose rules; see RematOptions. Empty: what autograd saves.
  std::string remat = {};
  std::string remat_policy = "torch-2.15";
  std::vector<JobCase> cases = {};
  std::vector<JobThroughput> throughput = {};
};

/// Members that say nothing (no mutant, say) are left out, so that a backend that is not ours never meets them.
void write_job(const std::filesystem::path& path, const Job& job);

/// Throws InputError naming the file and what is wrong in it.
Job read_job(const std::filesystem::path& path);

}  // namespace plumbline::conformance
