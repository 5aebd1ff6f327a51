#include "conformance/recordings.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

#include "conformance/rank_files.h"
#include "conformance/verdict.h"
#include "runtime/error.h"
#include "runtime/json_place.h"

namespace plumbline {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSchema = "plumbline-recording/1";

struct Recording {
  TensorMap tensors;                 ///< under keys without stages
  std::map<std::string, int> stage;  ///< by module, the first it was seen in
  std::vector<std::string> modules;  ///< in the order of the forward; empty: not told
};

std::vector<fs::path> tensor_files(const fs::path& folder) {
  std::error_code error;
  if (!fs::is_directory(folder, error)) throw InputError("no folder '" + folder.string() + "'");
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder, error))
    if (entry.path().extension() == ".safetensors") files.push_back(entry.path());
  if (error) throw InputError("folder '" + folder.string() + "' cannot be read (" + error.message() + ")");
  if (files.empty())
    throw InputError("no .safetensors files in '" + folder.string() + "' or below: nothing was recorded");
  std::sort(files.begin(), files.end());
  return files;
}

std::vector<std::string> module_order(const fs::path& path) {
  if (!fs::exists(path)) return {};
  const nlohmann::json document = parse_json(read_file(path), path.string());
  const JsonPlace place(document, path.string());
  place.expect_only({"schema", "modules"});
  if (place["schema"].json() != kSchema) place["schema"].fail("the schema \"" + std::string(kSchema) + "\"");
  std::vector<std::string> modules;
  for (const JsonPlace& item : place["modules"].items()) modules.push_back(item.text());
  return modules;
}

Recording read_recording(const fs::path& folder) {
  Recording recording;
  recording.modules = module_order(folder / "recording.json");
  for (const fs::path& file : tensor_files(folder)) {
    TensorMap part;
    try {
      for (auto& [text, tensor] : merge_rank_files({file})) {
        ResultKey key = parse_result_key(text);
        const auto [it, is_new] = recording.stage.try_emplace(key.name, key.stage);
        if (!is_new) it->second = std::min(it->second, key.stage);
        key.stage = -1;
        merge_results(part, {{to_string(key), tensor}});
      }
      merge_results(recording.tensors, part);
    } catch (const InputError&) {
      throw;
    } catch (const Error& error) {
      const std::string what = error.what();
      throw InputError(what.find(file.string()) == std::string::npos ? file.string() + ": " + what : what);
    }
  }
  return recording;
}

/// As people count: layers.2 before layers.10.
bool natural_less(const std::string& a, const std::string& b) {
  const auto digit = [](const std::string& text, size_t i) {
    return i < text.size() && std::isdigit(static_cast<unsigned char>(text[i])) != 0;
  };
  size_t i = 0, j = 0;
  while (i < a.size() && j < b.size()) {
    if (digit(a, i) && digit(b, j)) {
      while (a[i] == '0' && digit(a, i + 1)) ++i;
      while (b[j] == '0' && digit(b, j + 1)) ++j;
      size_t m = i, n = j;
      while (digit(a, m)) ++m;
      while (digit(b, n)) ++n;
      const int order = m - i != n - j ? (m - i < n - j ? -1 : 1) : a.compare(i, m - i, b, j, n - j);
      if (order != 0) return order < 0;
      i = m, j = n;
    } else if (a[i] != b[j]) {
      return a[i] < b[j];
    } else {
      ++i, ++j;
    }
  }
  return std::tuple(a.size() - i, a) < std::tuple(b.size() - j, b);
}

/// Where each name stands in the order of the forward.
std::map<std::string, int> positions(const Recording& pipeline, const Recording& one_rank) {
  const std::vector<std::string>& told = pipeline.modules.empty() ? one_rank.modules : pipeline.modules;
  std::map<std::string, int> position;
  for (const std::string& module : told) position.try_emplace(module, static_cast<int>(position.size()));
  std::vector<std::pair<int, std::string>> rest;
  for (const Recording* recording : {&pipeline, &one_rank})
    for (const auto& [name, stage] : recording->stage)
      if (!position.contains(name) && (recording == &pipeline || !pipeline.stage.contains(name)))
        rest.emplace_back(recording == &pipeline ? stage : -1, name);
  std::sort(rest.begin(), rest.end(), [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first < b.first : natural_less(a.second, b.second);
  });
  for (const auto& [stage, name] : rest) position.try_emplace(name, static_cast<int>(position.size()));
  return position;
}

}  // namespace

RecordingsVerdict compare_recordings(const fs::path& pipeline_folder, const fs::path& one_rank_folder) {
  const Recording pipeline = read_recording(pipeline_folder), one_rank = read_recording(one_rank_folder);
  RecordingsVerdict verdict;
  verdict.differences = compare(one_rank.tensors, pipeline.tensors, CompareMode::Bitwise);
  const std::map<std::string, int> position = positions(pipeline, one_rank);
  // compare() has put kinds and micro-batches in causal order; among equals the forward goes up through the modules,
  // and what comes back goes down.
  const auto place = [&](const Difference& d) {
    const bool back = d.key.kind != ResultKind::Forward && d.key.kind != ResultKind::Output;
    return back ? -position.at(d.key.name) : position.at(d.key.name);
  };
  std::stable_sort(verdict.differences.begin(), verdict.differences.end(),
                   [&](const Difference& a, const Difference& b) {
                     ResultKey left = a.key, right = b.key;
                     left.name = right.name = "x";
                     if (causal_less(left, right) || causal_less(right, left)) return causal_less(left, right);
                     return place(a) < place(b);
                   });
  std::set<std::string> kinds;
  for (const auto& [key, tensor] : one_rank.tensors) {
    if (!pipeline.tensors.contains(key)) continue;
    ++verdict.tensors;
    kinds.insert(std::string(kind_name(parse_result_key(key).kind)));
  }
  verdict.checked.assign(kinds.begin(), kinds.end());
  return verdict;
}

std::string recording_sentence(const Difference& difference) {
  const ResultKey& key = difference.key;
  std::string text = "step " + std::to_string(key.step);
  if (key.microbatch >= 0) text += ", micro-batch " + std::to_string(key.microbatch);
  switch (key.kind) {
    case ResultKind::Forward:
      text += ", forward of module `" + key.name + "`: ";
      break;
    case ResultKind::Backward:
      text += ", backward of module `" + key.name + "`: ";
      break;
    case ResultKind::Partial:
      text += ", accumulation into the gradient of `" + key.name + "`: ";
      break;
    default:
      text += ", " + std::string(kind_name(key.kind)) + " `" + key.name + "`: ";
      break;
  }
  // The rest of the sentence is a verdict's own, after its name.
  const std::string whole = sentence(difference);
  const std::string name = "`" + one_line(key.name) + "` ";
  return one_line(text) + whole.substr(whole.find(name) + name.size());
}

}  // namespace plumbline
