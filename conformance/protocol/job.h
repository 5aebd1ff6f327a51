// A job: the cases and measurements that a backend is to run, as a file that any language can read.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace plumbline::conformance {

struct JobCase {
  std::string id;
  std::string schedule;  ///< a name, or the path of the file that held `csv`
  std::string csv = {};  ///< the text of a schedule that has no name
  /// Folder of the exported case, from the job file's folder; empty: a backend that knows the corpus looks `id` up.
  std::string folder = {};
  /// Prefix of its result files below the output folder; see result_path() in report_folder.h. Empty in a job that has
  /// not been written yet.
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
  bool trace = false;  ///< also the times of each action in the last step
};

struct Job {
  int ranks = 1;
  uint64_t seed = 0;
  /// The longest wait for one message.
  double timeout_seconds = 60;
  /// Replaces the number of each case; 0: keeps it.
  int microbatches = 0;
  /// A fault to inject; empty: none.
  std::string mutant = {};
  /// Which micro-batches' stages are recomputed in the backward; see parse_recompute().
  std::string recompute = "never";
  /// Which values stages save, and by which rules; see RematOptions. Empty: what autograd saves.
  std::string remat = {};
  std::string remat_policy = "torch-2.15";
  std::vector<JobCase> cases = {};
  std::vector<JobThroughput> throughput = {};
};

/// Members with their default value (no mutant, for one) are left out, so that a foreign backend never reads them.
void write_job(const std::filesystem::path& path, const Job& job);

/// Throws InputError naming the file and the error in it.
Job read_job(const std::filesystem::path& path);

}  // namespace plumbline::conformance
