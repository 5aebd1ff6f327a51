#include "conformance/backend/job.h"

#include <charconv>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "conformance/report/write_text.h"
#include "runtime/error.h"

namespace plumbline {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(JobCase, id, schedule, csv, folder, results)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(JobThroughput, schedule, model, forward_ms, backward_ms, rows,
                                                microbatches, steps, trace)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Job, ranks, seed, timeout_seconds, microbatches, mutant, recompute,
                                                remat, remat_policy, cases, throughput)

namespace {

constexpr const char* kFormat = "plumbline-job/1";

std::string result_prefix(const JobCase& c) {
  if (!c.results.empty()) return c.results;
  return (std::filesystem::path(c.schedule).filename() / c.id / "rank").string();
}

}  // namespace

void write_job(const std::filesystem::path& path, const Job& job) {
  Job complete = job;
  for (JobCase& c : complete.cases) c.results = result_prefix(c);
  nlohmann::json json = complete;
  const nlohmann::json silent = Job{};
  for (auto it = json.begin(); it != json.end();)
    it = it.key() != "ranks" && it.key() != "seed" && it.key() != "timeout_seconds" && it.key() != "cases" &&
                 *it == silent.at(it.key())
             ? json.erase(it)
             : std::next(it);
  for (nlohmann::json& c : json["cases"])
    for (const char* key : {"csv", "folder"})
      if (c[key] == "") c.erase(key);
  json["format"] = kFormat;
  write_text_file(path, json.dump(1) + "\n");
}

Job read_job(const std::filesystem::path& path) {
  std::ifstream in(path);
  if (!in) throw InputError("job file " + path.string() + " cannot be read");
  try {
    const nlohmann::json json = nlohmann::json::parse(in);
    if (json.at("format") != kFormat)
      throw InputError("job file " + path.string() + ": format " + json.at("format").dump() + "; accepted is \"" +
                       kFormat + "\"");
    return json.get<Job>();
  } catch (const nlohmann::json::exception& error) {
    throw InputError("job file " + path.string() + ": " + error.what());
  }
}

std::filesystem::path result_path(const std::filesystem::path& out, const JobCase& c, int rank) {
  return out / (result_prefix(c) + std::to_string(rank) + ".safetensors");
}

std::vector<std::filesystem::path> result_files(const std::filesystem::path& out, const JobCase& c) {
  const std::filesystem::path prefix = out / result_prefix(c);
  const std::string begin = prefix.filename().string(), end = ".safetensors";
  std::map<int, std::filesystem::path> files;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(prefix.parent_path(), none)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(begin) || !name.ends_with(end) || name.size() <= begin.size() + end.size()) continue;
    int rank = 0;
    const char* last = name.data() + name.size() - end.size();
    const auto [stop, error] = std::from_chars(name.data() + begin.size(), last, rank);
    if (error == std::errc() && stop == last && rank >= 0) files.emplace(rank, entry.path());
  }
  std::vector<std::filesystem::path> ordered;
  for (const auto& [rank, file] : files) ordered.push_back(file);
  return ordered;
}

std::filesystem::path throughput_path(const std::filesystem::path& out, size_t index, int rank) {
  return out / "throughput" / std::to_string(index) / ("rank" + std::to_string(rank) + ".json");
}

}  // namespace plumbline
