// A job: the supervisor's request to a backend, as a file that any language can read.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace plumbline::conformance {

struct JobCase {
  std::string id;
  std::string schedule;  ///< a name, or the path of the file that contained `csv`
  std::string csv = {};  ///< the text of the schedule, if it comes from a file
  /// The folder of the exported case, relative to the job file; empty: the backend knows the corpus and looks up `id`.
  std::string folder = {};
  /// The common prefix of its result files, relative to the output folder; see result_path() in report_folder.h. Empty
  /// before the job is written.
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
  /// Replaces the number of each case; 0: the number of the case.
  int microbatches = 0;
  /// A fault to inject; empty: none.
  std::string mutant = {};
  /// Which micro-batches' stages are recomputed in the backward; see parse_recompute().
  std::string recompute = "never";
  /// Which values stages save and which they recompute, and by which rules; see RematOptions. Empty: as autograd does.
  std::string remat = {};
  std::string remat_policy = "torch-2.15";
  std::vector<JobCase> cases = {};
  std::vector<JobThroughput> throughput = {};
};

/// Writes no member with its default value (such as no mutant), so that other backends need not know it.
void write_job(const std::filesystem::path& path, const Job& job);

/// Throws InputError that names the file and the error in it.
Job read_job(const std::filesystem::path& path);

}  // namespace plumbline::conformance
