#include "conformance/protocol/report_folder.h"

#include <charconv>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "conformance/protocol/protocol.h"
#include "runtime/error.h"
#include "runtime/io/regular_file.h"

namespace plumbline::conformance {
namespace {

constexpr const char* kResultExtension = ".safetensors";
constexpr const char* kTimelines = "timelines";
constexpr const char* kBackendLog = "backend.log";

/// The rank whose results have this name, if there can be one.
std::optional<int> rank_of_result(const std::filesystem::path& file, const JobCase& c) {
  const std::string name = file.filename().string();
  const size_t begin = std::filesystem::path(result_prefix(c)).filename().string().size();
  int rank = 0;
  std::from_chars(name.data() + begin, name.data() + name.size(), rank);
  if (rank < 0 || name != result_path("", c, rank).filename().string()) return std::nullopt;
  return rank;
}

}  // namespace

std::vector<std::filesystem::path> ReportFolder::outcome() const {
  return {results(), path_ / kTimelines, report(), junit(), matrix_picture(), matrix_page()};
}

std::filesystem::path ReportFolder::job_output(int ranks, TransportKind transport) const {
  return results() / (transport_name(transport) + "-" + std::to_string(ranks));
}

std::filesystem::path ReportFolder::recording(const JobCase& item, int ranks) const {
  return recording_folder(job_output(ranks, TransportKind::Own), item);
}

std::filesystem::path ReportFolder::baseline_recording(const std::string& model) const {
  return recording({model, kOneRank}, 1);
}

std::filesystem::path timeline_name(size_t index) {
  return std::filesystem::path(kTimelines) / (std::to_string(index) + ".svg");
}

std::filesystem::path job_path(const std::filesystem::path& out) { return out / "job.json"; }

std::string result_prefix(const JobCase& c) {
  if (!c.results.empty()) return c.results;
  return (std::filesystem::path(c.schedule).filename() / c.id / "rank").string();
}

std::filesystem::path result_path(const std::filesystem::path& out, const JobCase& c, int rank) {
  return out / (result_prefix(c) + std::to_string(rank) + kResultExtension);
}

std::vector<std::filesystem::path> named_as_results(const std::filesystem::path& out, const JobCase& c) {
  const std::filesystem::path prefix = out / result_prefix(c);
  const std::string begin = prefix.filename().string(), end = kResultExtension;
  std::vector<std::filesystem::path> files;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(prefix.parent_path(), none)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(begin) && name.ends_with(end) && name.size() >= begin.size() + end.size())
      files.push_back(entry.path());
  }
  return files;
}

std::vector<std::filesystem::path> result_files(const std::filesystem::path& out, const JobCase& c) {
  std::map<int, std::filesystem::path> files;
  for (const std::filesystem::path& file : named_as_results(out, c))
    if (const auto rank = rank_of_result(file, c)) files.emplace(*rank, file);
  std::vector<std::filesystem::path> ordered;
  for (const auto& [rank, file] : files) ordered.push_back(file);
  return ordered;
}

std::vector<std::filesystem::path> stray_result_files(const std::filesystem::path& out, const JobCase& c, int ranks) {
  std::set<std::pair<int, std::filesystem::path>> files;
  for (const std::filesystem::path& file : named_as_results(out, c))
    if (const int rank = rank_of_result(file, c).value_or(-1); rank < 0 || rank >= ranks) files.emplace(rank, file);
  std::vector<std::filesystem::path> ordered;
  for (const auto& [rank, file] : files) ordered.push_back(file);
  return ordered;
}

std::string remove_below(const std::filesystem::path& folder, const std::filesystem::path& below,
                         const std::string& comment) {
  if (std::string wrong = why_no_folder(folder, below.parent_path()); !wrong.empty()) return wrong;
  std::error_code error;
  std::filesystem::remove_all(folder / below, error);
  return error ? "cannot remove " + (folder / below).string() + comment + ": " + error.message() : "";
}

std::string remove_results(const std::filesystem::path& out, const JobCase& c) {
  PLUMBLINE_CHECK(c.results.empty(), c.results);
  return remove_below(out.parent_path(), result_path(out.filename(), c, 0).parent_path(),
                      ", left from an earlier attempt");
}

bool is_result_file(const std::filesystem::path& file) {
  return file.extension() == kResultExtension && file.filename().string().starts_with("rank");
}

std::filesystem::path recording_folder(const std::filesystem::path& out, const JobCase& item) {
  return result_path(out, item, 0).parent_path();
}

std::filesystem::path exported_case(const JobCase& item) {
  return std::filesystem::path("cases") / std::filesystem::path(item.schedule).filename() / item.id;
}

std::filesystem::path backend_log(const std::filesystem::path& out, const JobCase& item) {
  return out / "logs" / std::filesystem::path(item.schedule).filename() / item.id / kBackendLog;
}

std::filesystem::path backend_log(const std::filesystem::path& out) { return out / kBackendLog; }

std::filesystem::path flight_page(const std::filesystem::path& out, const JobCase& item) {
  return backend_log(out, item).replace_filename("flight.txt");
}

std::filesystem::path flight_log(const std::filesystem::path& out, int rank) {
  return out / "flight" / ("rank" + std::to_string(rank));
}

std::filesystem::path throughput_path(const std::filesystem::path& out, size_t index, int rank) {
  return out / "throughput" / std::to_string(index) / ("rank" + std::to_string(rank) + ".json");
}

}  // namespace plumbline::conformance
