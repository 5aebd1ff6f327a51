#include "conformance/recording/recording.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "runtime/error.h"
#include "runtime/io/json_place.h"

namespace plumbline::conformance {
namespace {

namespace fs = std::filesystem;

constexpr const char* kRecordingSchema = "plumbline-recorder/1";
constexpr int kMostRanks = 1 << 20;

struct RankIndex {
  int ranks = 0;
  int microbatches = 0;
  bool whole_batch = false;
  double loss_scale = 1.0;
  bool is_perturbed = false;
  std::vector<fs::path> files;
  std::vector<std::string> parameters, order;
  std::map<std::string, std::string> tied;
};

RankIndex read_index(const fs::path& folder, int rank) {
  const std::string file = "rank" + std::to_string(rank) + ".json";
  const fs::path path = folder / file;
  const nlohmann::json document = parse_json(read_file(RegularFile(folder, file)), path.string());
  const JsonPlace root(document, path.string());
  if (root["schema"].text() != kRecordingSchema) root["schema"].fail(kRecordingSchema);
  root.expect_only({"schema", "rank", "ranks", "microbatches", "whole_batch", "loss_scale", "perturb", "torch", "files",
                    "parameters", "order", "tied"});
  if (root["rank"].integer() != rank) root["rank"].fail(std::to_string(rank) + ", as the file's name says");
  RankIndex index;
  index.ranks = root["ranks"].small(1, kMostRanks);
  index.microbatches = root["microbatches"].small(1, kMostRanks);
  index.whole_batch = root["whole_batch"].boolean();
  const nlohmann::json& scale = root["loss_scale"].json();
  if (!scale.is_number() || !std::isfinite(scale.get<double>()) || scale.get<double>() == 0)
    root["loss_scale"].fail("a finite number that is not 0");
  index.loss_scale = scale.get<double>();
  const auto perturb = root.find("perturb");
  index.is_perturbed = perturb && !perturb->is_null();
  if (index.is_perturbed) perturb->number();
  int step = 0;
  for (const JsonPlace& item : root["files"].items()) {
    const std::string name = "rank" + std::to_string(rank) + ".step" + std::to_string(step++) + ".safetensors";
    if (item.text() != name) item.fail(name);
    index.files.push_back(folder / name);
  }
  index.parameters = root["parameters"].texts();
  index.order = root["order"].texts();
  if (const auto tied = root.find("tied"))
    for (const auto& [name, first] : tied->members()) index.tied.emplace(name, first.text());
  return index;
}

}  // namespace

bool is_recording(const fs::path& folder) {
  std::error_code none;
  return fs::symlink_status(folder / "rank0.json", none).type() != fs::file_type::not_found;
}

Recording read_recording(const fs::path& folder) {
  if (!fs::is_directory(folder)) throw InputError(folder.string() + ": no such folder");
  if (!is_recording(folder))
    throw InputError(folder.string() + ": not a recording of plumbline_recorder.py (it has no rank0.json)");
  Recording recording{.folder = folder};
  std::set<std::string> known;
  int ranks = 1;
  for (int rank = 0; rank < ranks; ++rank) {
    if (!fs::exists(folder / ("rank" + std::to_string(rank) + ".json")))
      throw InputError(folder.string() + ": rank" + std::to_string(rank) + ".json is missing, the run had " +
                       std::to_string(ranks) + " ranks (did that rank reach step_done()?)");
    RankIndex index = read_index(folder, rank);
    if (rank == 0) {
      ranks = index.ranks;
      recording.microbatches = index.microbatches;
      recording.whole_batch = index.whole_batch;
      recording.loss_scale = index.loss_scale;
      recording.is_perturbed = index.is_perturbed;
      recording.files.resize(index.files.size());
    }
    if (index.ranks != ranks || index.microbatches != recording.microbatches ||
        index.whole_batch != recording.whole_batch || index.loss_scale != recording.loss_scale ||
        index.is_perturbed != recording.is_perturbed)
      throw InputError(folder.string() + ": rank0.json and rank" + std::to_string(rank) +
                       ".json are of different runs (ranks, microbatches, whole_batch, loss_scale or perturb)");
    recording.files.resize(std::min(recording.files.size(), index.files.size()));
    for (size_t step = 0; step < recording.files.size(); ++step) recording.files[step].push_back(index.files[step]);
    for (std::string& name : index.order)
      if (known.insert(name).second) recording.order.push_back(std::move(name));
    recording.parameters.insert(index.parameters.begin(), index.parameters.end());
    recording.tied.merge(index.tied);
  }
  if (fs::exists(folder / ("rank" + std::to_string(ranks) + ".json")))
    throw InputError(folder.string() + ": rank" + std::to_string(ranks) + ".json is of another run, this one had " +
                     std::to_string(ranks) + " ranks; empty the folder before a run with fewer");
  if (recording.files.empty()) throw InputError(folder.string() + ": no step was recorded by every rank");
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.is_directory() && entry.path().filename().string().starts_with("perturbed-"))
      recording.perturbed.push_back(entry.path());
  std::sort(recording.perturbed.begin(), recording.perturbed.end());
  return recording;
}

RecordedStep read_step(const Recording& recording, int step) {
  RecordedStep values;
  const auto& files = recording.files.at(static_cast<size_t>(step));
  for (size_t rank = 0; rank < files.size(); ++rank) {
    for (auto& [text, tensor] : read_tensors(RegularFile(recording.folder, files[rank].filename()))) {
      const reference::ResultKey key = reference::parse_result_key(text);
      if (key.step != step)
        throw InputError(files[rank].string() + ": `" + text + "` is not of step " + std::to_string(step));
      std::vector<RecordedCopy>& copies = values[{key.kind, key.microbatch, key.name}];
      for (const RecordedCopy& other : copies)
        if (key.stage >= 0 && other.stage == key.stage && other.rank != static_cast<int>(rank))
          throw InputError(recording.folder.string() + ": ranks " + std::to_string(other.rank) + " and " +
                           std::to_string(rank) + " both recorded `" + text +
                           "`; replicas of a stage are not compared, record one of them");
      copies.push_back({static_cast<int>(rank), key.stage, std::move(tensor)});
    }
  }
  return values;
}

}  // namespace plumbline::conformance
