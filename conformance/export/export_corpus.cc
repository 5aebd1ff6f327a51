#include "conformance/export/export_corpus.h"

#include <map>
#include <sstream>

#include "conformance/backend/built_models.h"
#include "conformance/corpus/case_schedule.h"
#include "conformance/export/expected.h"
#include "conformance/export/export_case.h"
#include "conformance/export/json_layout.h"
#include "conformance/judge/expectation.h"
#include "conformance/plan/plan.h"
#include "conformance/report/context.h"
#include "runtime/error.h"
#include "runtime/io/sha256.h"
#include "runtime/io/tensor_file.h"
#include "runtime/io/write_file.h"

namespace plumbline::conformance {
namespace {

namespace fs = std::filesystem;

std::string name_of(const ChosenSchedule& chosen) {
  return chosen.csv.empty() ? chosen.name : fs::path(chosen.name).stem().string();
}

/// The name of a schedule is a part of the path of its folder.
void expect_distinct_names(const std::vector<ChosenSchedule>& schedules) {
  std::map<std::string, std::string> given;
  for (const ChosenSchedule& chosen : schedules) {
    const auto [first, is_new] = given.emplace(name_of(chosen), chosen.name);
    if (!is_new)
      throw InputError("export: the schedules " + first->second + " and " + chosen.name + " have the same folder, ID/" +
                       first->first + "-RANKS; rename the file");
  }
}

std::vector<ChosenSchedule> schedules_of(const reference::Case& c, const ExportRequest& request) {
  if (c.schedule_csv.empty()) return request.schedules;
  return {{kOwnSchedule, c.schedule_csv}};
}

std::vector<ExportedFile> files_of(const fs::path& folder, reference::Truth truth) {
  std::vector<ExportedFile> files;
  for (const char* name :
       {"case.json", "expected.json", "expected.safetensors", "program.json", "schedule.csv", "tensors.safetensors"}) {
    if (!fs::exists(folder / name)) continue;
    const std::string bytes = read_file(folder / name);
    const std::string_view file = name;
    const bool form = file == "case.json" || file == "program.json" || file == "schedule.csv";
    const bool pinned = form || (truth == reference::Truth::Exact && file.ends_with(".safetensors"));
    files.push_back({name, bytes.size(), sha256(bytes), pinned});
  }
  return files;
}

void export_one(const reference::Case& c, const ChosenSchedule& chosen, const ExportRequest& request,
                ModelFacts& models, ExportedCase& exported) {
  schedule::Schedule schedule = case_schedule(c, chosen, c.schedule_csv.empty() ? request.ranks : 0);
  exported.ranks = static_cast<int>(schedule.ranks.size());
  exported.stages = schedule.stages;
  exported.folder = c.id + "/" + exported.schedule + "-" + std::to_string(exported.ranks);
  exported.refused = why_unsupported(c, schedule, models);
  if (c.truth == reference::Truth::Exact && exported.refused.empty())
    if (const std::string problem = exactness_problem(c, request.seed); !problem.empty())
      exported.refused = "it is not proven exact: " + problem;
  if (!exported.refused.empty()) return;
  const fs::path folder = request.out / exported.folder;
  // An earlier export may have left files of another version, such as expected results.
  std::error_code failed;
  fs::remove_all(folder, failed);
  if (failed) throw WriteError("cannot replace " + folder.string() + ": " + failed.message());
  schedule.name = exported.schedule;  // not the path of a file: the same export has the same bytes everywhere
  export_case(c, schedule, request.seed, folder);
  if (request.expected) write_expected(c, schedule, request.seed, folder);
  exported.files = files_of(folder, c.truth);
}

void write_manifest(const ExportRequest& request, const std::vector<ExportedCase>& cases) {
  using Json = nlohmann::ordered_json;
  Json exported = Json::array(), refused = Json::array();
  for (const ExportedCase& c : cases) {
    if (!c.refused.empty()) {
      refused.push_back({{"id", c.id}, {"schedule", c.schedule}, {"reason", c.refused}});
      continue;
    }
    Json files = Json::object();
    for (const ExportedFile& file : c.files) files[file.name] = {{"bytes", file.bytes}, {"sha256", file.sha256}};
    exported.push_back({{"id", c.id},
                        {"folder", c.folder},
                        {"truth", to_string(c.truth)},
                        {"schedule", c.schedule},
                        {"ranks", c.ranks},
                        {"stages", c.stages},
                        {"files", std::move(files)}});
  }
  Json manifest = Json::object();
  manifest["format"] = kManifestFormat;
  manifest["plumbline"] = plumbline_version();
  manifest["seed"] = request.seed;
  manifest["cases"] = std::move(exported);
  manifest["refused"] = std::move(refused);
  write_file(request.out / "manifest.json", json_layout(manifest));
}

/// The hashes by file.
std::map<std::string, std::string> by_file(const std::string& text) {
  std::map<std::string, std::string> hashes;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);)
    if (line.size() > 66) hashes[line.substr(66)] = line.substr(0, 64);
  return hashes;
}

}  // namespace

std::vector<ExportedCase> export_cases(const ExportRequest& request,
                                       const std::function<void(const ExportedCase&)>& say) {
  expect_distinct_names(request.schedules);
  std::error_code failed;
  fs::create_directories(request.out, failed);
  if (failed) throw InputError("export: " + request.out.string() + " cannot be created: " + failed.message());
  const std::unique_ptr<ModelFacts> models = built_models(request.seed);
  std::vector<ExportedCase> cases;
  for (const reference::Case& c : request.cases)
    for (const ChosenSchedule& chosen : schedules_of(c, request)) {
      ExportedCase exported{.id = c.id, .schedule = name_of(chosen), .truth = c.truth};
      try {
        export_one(c, chosen, request, *models, exported);
      } catch (const WriteError&) {
        throw;  // no reason to call the case refused
      } catch (const InputError& error) {
        exported.refused = error.what();
      }
      say(exported);
      cases.push_back(std::move(exported));
    }
  write_manifest(request, cases);
  return cases;
}

std::string lock_text(const std::vector<ExportedCase>& cases) {
  std::map<std::string, std::string> hashes;
  for (const ExportedCase& c : cases)
    for (const ExportedFile& file : c.files)
      if (file.pinned) hashes[c.folder + "/" + file.name] = file.sha256;
  std::string text;
  for (const auto& [file, hash] : hashes) text += hash + "  " + file + "\n";
  return text;
}

std::vector<std::string> lock_differences(const std::string& locked, const std::string& present) {
  const std::map<std::string, std::string> before = by_file(locked), now = by_file(present);
  std::vector<std::string> differences;
  for (const auto& [file, hash] : now) {
    const auto it = before.find(file);
    if (it == before.end())
      differences.push_back(file + " is not in the lock file");
    else if (it->second != hash)
      differences.push_back(file + " differs from the lock file");
  }
  for (const auto& [file, hash] : before)
    if (!now.contains(file)) differences.push_back(file + " is in the lock file but was not exported");
  return differences;
}

}  // namespace plumbline::conformance
