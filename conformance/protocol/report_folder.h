// Every path of a report folder. No other file builds these paths.
//
//   run.json                            the requested run (run_record.h)
//   results.jsonl                       its verdicts, a line each, written as they arrive (json.h)
//   report.json                         the whole report, written at the end; timelines/0.svg: its pictures
//   junit.xml  matrix.svg  matrix.html  the same for other readers
//   results/mpi-4/                      the output folder of a job (--out), by transport and number of ranks:
//     job.json                            the job
//     1f1b/ID/rank0.safetensors           results of a rank; rank0.json for a recording (recording.h)
//     cases/1f1b/ID/                      the exported case, for a backend that reads files only
//     throughput/0/rank0.json             times of a rank in one measurement
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "conformance/protocol/job.h"
#include "conformance/protocol/transport_kind.h"

namespace plumbline::conformance {

class ReportFolder {
 public:
  explicit ReportFolder(std::filesystem::path path) : path_(std::move(path)) {}

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path run_record() const { return path_ / "run.json"; }
  std::filesystem::path verdict_log() const { return path_ / "results.jsonl"; }
  std::filesystem::path report() const { return path_ / "report.json"; }
  std::filesystem::path junit() const { return path_ / "junit.xml"; }
  std::filesystem::path matrix_picture() const { return path_ / "matrix.svg"; }
  std::filesystem::path matrix_page() const { return path_ / "matrix.html"; }
  std::filesystem::path results() const { return path_ / "results"; }

  /// The paths that a new run removes before it begins: all except run.json and results.jsonl.
  std::vector<std::filesystem::path> outcome() const;

  /// The output folder of the jobs on `ranks` ranks.
  std::filesystem::path job_output(int ranks, TransportKind transport) const;
  /// For a backend's custom model: the recordings of a run, and of the run on one rank that it is compared with.
  std::filesystem::path recording(const JobCase& item, int ranks) const;
  std::filesystem::path baseline_recording(const std::string& model) const;

 private:
  std::filesystem::path path_;
};

/// The picture of a measurement, by its index in the report; relative to the report folder.
std::filesystem::path timeline_name(size_t index);

/// The job file in an output folder.
std::filesystem::path job_path(const std::filesystem::path& out);

/// The common prefix of the case's result files, relative to the output folder: JobCase::results, or its future value.
std::string result_prefix(const JobCase& c);

/// The result file of a rank for a case: below the output folder, under the schedule's name (for a CSV file, its name
/// without folders). It is never read before it is complete.
std::filesystem::path result_path(const std::filesystem::path& out, const JobCase& c, int rank);
/// The existing result files of a case, ascending by rank.
std::vector<std::filesystem::path> result_files(const std::filesystem::path& out, const JobCase& c);
/// Whether a file has the name of a result file.
bool is_result_file(const std::filesystem::path& file);

/// The folder of a model's recording: its rank<R>.json are `results` of the job with the rank and ".json".
std::filesystem::path recording_folder(const std::filesystem::path& out, const JobCase& item);
/// The folder of an exported case, relative to the output folder.
std::filesystem::path exported_case(const JobCase& item);
/// The file with a rank's times of a measurement.
std::filesystem::path throughput_path(const std::filesystem::path& out, size_t index, int rank);

}  // namespace plumbline::conformance
