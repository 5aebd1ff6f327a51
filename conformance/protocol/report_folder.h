// Every path of a report folder. No other file builds these paths.
//
//   run.json                            the requested run (run_record.h)
//   results.jsonl                       the verdicts, one line each, written as they arrive (json.h)
//   report.json                         the whole report, written at the end
//   timelines/0.svg                     pictures of measurements, part of the report
//   junit.xml  matrix.svg  matrix.html  the report in other formats
//   results/corpus/                     the user's files of cases (--corpus), as they were when the run began
//   results/mpi-4/                      the output folder of a job (--out), by transport and number of ranks:
//     job.json                            the job
//     1f1b/ID/rank0.safetensors           the results of a rank; rank0.json for a recording (recording.h)
//     cases/1f1b/ID/                      the exported case, for a backend that reads files only
//     logs/1f1b/ID/backend.log            what the backend printed during the case; without a file: nothing
//     backend.log                         what it printed outside of the cases
//     logs/1f1b/ID/flight.txt             who waited for whom when the runtime's ranks ended in a wait
//     flight/rank0                        the last events of a rank of the runtime (flight_log.h)
//     throughput/0/rank0.json             the times of a rank in one measurement
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
  std::filesystem::path corpus() const { return results() / "corpus"; }

  /// The paths that a new run removes before it starts: all except run.json and results.jsonl.
  std::vector<std::filesystem::path> outcome() const;

  /// The output folder of the jobs on `ranks` ranks over `transport`.
  std::filesystem::path job_output(int ranks, TransportKind transport) const;
  /// The folders with the recordings of a custom model: of a run on `ranks` ranks, and of its baseline on one rank.
  std::filesystem::path recording(const JobCase& item, int ranks) const;
  std::filesystem::path baseline_recording(const std::string& model) const;

 private:
  std::filesystem::path path_;
};

/// The path of a measurement's picture, relative to the report folder. `index`: in RunReport::throughput.
std::filesystem::path timeline_name(size_t index);

/// The job file in an output folder.
std::filesystem::path job_path(const std::filesystem::path& out);

/// The common prefix of the case's result files, relative to the output folder: JobCase::results, or its default if
/// that is empty.
std::string result_prefix(const JobCase& c);

/// The result file of a rank for a case: OUT/SCHEDULE/ID/rank<R>.safetensors by default, where SCHEDULE is a name or,
/// for a CSV file, the file name.
std::filesystem::path result_path(const std::filesystem::path& out, const JobCase& c, int rank);
/// The entries of the folder of the case's results whose names begin and end as those of result files, in no order:
/// result files, and others such as folders, or "rank-1.safetensors".
std::vector<std::filesystem::path> named_as_results(const std::filesystem::path& out, const JobCase& c);
/// The existing result files of a case, by ascending rank. Empty if there are none.
std::vector<std::filesystem::path> result_files(const std::filesystem::path& out, const JobCase& c);
/// The entries of named_as_results() that belong to none of the `ranks`: those without a rank, by name, then the
/// others, by rank.
std::vector<std::filesystem::path> stray_result_files(const std::filesystem::path& out, const JobCase& c, int ranks);
/// Removes the folder `folder / below`. A link in its place is removed, and not what it leads to; nothing is removed
/// below a link, or anything else, in place of the folders between. Returns why something may be left, in one line
/// with `comment` after the folder's name; empty if nothing is.
std::string remove_below(const std::filesystem::path& folder, const std::filesystem::path& below,
                         const std::string& comment = "");
/// remove_below() of the folder of the case's results, or of its recording: what an earlier attempt has left there must
/// not be judged. Precondition: JobCase::results is empty, so that the folder is of this case alone.
std::string remove_results(const std::filesystem::path& out, const JobCase& c);
/// Whether a file has the name of a result file: rank*.safetensors.
bool is_result_file(const std::filesystem::path& file);

/// The folder of a custom model's recording, below the output folder. Its indexes are rank<R>.json.
std::filesystem::path recording_folder(const std::filesystem::path& out, const JobCase& item);
/// The folder of an exported case, relative to the output folder.
std::filesystem::path exported_case(const JobCase& item);
/// The file with what the backend printed during a case, or outside of the cases (backend_log.h).
std::filesystem::path backend_log(const std::filesystem::path& out, const JobCase& item);
std::filesystem::path backend_log(const std::filesystem::path& out);
/// The page about the waits in which a case ended (who_waits.h), and the log of a rank's last events.
std::filesystem::path flight_page(const std::filesystem::path& out, const JobCase& item);
std::filesystem::path flight_log(const std::filesystem::path& out, int rank);
/// The file with the times of a rank in one measurement. `index`: in Job::throughput.
std::filesystem::path throughput_path(const std::filesystem::path& out, size_t index, int rank);

}  // namespace plumbline::conformance
