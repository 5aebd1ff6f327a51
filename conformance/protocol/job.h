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
  std::string csv = {};  ///< the text of the schedule if it comes from a file, else empty
  /// The folder of the exported case, relative to the job file; empty: the backend knows the corpus and looks up `id`.
  std::string folder = {};
  /// The common prefix of the case's result files, relative to the output folder; see result_path() in report_folder.h.
  /// Empty: write_job() writes the default prefix.
  std::string results = {};
};

/// One measurement of throughput.
struct JobThroughput {
  std::string schedule = {};
  /// A model of the zoo; empty: stages that sleep instead of computing.
  std::string model = {};
  /// The time that the sleeping stages of one rank together sleep for one micro-batch, in ms.
  double forward_ms = 0, backward_ms = 0;
  int rows = 0;
  int microbatches = 0;
  int steps = 0;
  bool trace = false;  ///< also record the times of each action in the last step
};

struct Job {
  int ranks = 1;
  uint64_t seed = 0;
  /// The longest wait for one message.
  double timeout_seconds = 60;
  /// The number of micro-batches of every case; 0: each case's own number.
  int microbatches = 0;
  /// The name of the mutant to inject; empty: none.
  std::string mutant = {};
  /// The micro-batches whose stages are recomputed in the backward: "never", "except-last" or "always".
  std::string recompute = "never";
  /// RematOptions::mode and RematOptions::policy, which select the values that stages save and recompute. Empty mode:
  /// autograd decides.
  std::string remat = {};
  std::string remat_policy = "torch-2.15";
  /// Words of transport::parse_wire(): how the transport is made worse on purpose. Empty: not at all.
  std::string wire = {};
  /// Where the ranks compute: "cpu" or "cuda".
  std::string device = "cpu";
  /// The user's folder of cases, which ids may name; empty: none. A foreign backend gets exported cases instead.
  std::string corpus = {};
  std::vector<JobCase> cases = {};
  std::vector<JobThroughput> throughput = {};
};

/// The text of a job file: JSON. Optional members with their default value are omitted, so that a backend need not know
/// them.
std::string job_text(const Job& job);

/// Reads the text of a job file. Throws InputError, which names `source` and the error in it, if it is malformed.
Job parse_job(const std::string& text, const std::string& source);

/// Writes job_text(). Throws InputError if the file cannot be written.
void write_job(const std::filesystem::path& path, const Job& job);

/// Returns parse_job() of a file. Throws InputError also if the file cannot be read.
Job read_job(const std::filesystem::path& path);

}  // namespace plumbline::conformance
