#include "conformance/export/check_export.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "conformance/export/expected.h"
#include "conformance/export/export_case.h"
#include "conformance/export/export_corpus.h"
#include "conformance/export/opset.h"
#include "runtime/error.h"
#include "runtime/io/json_place.h"
#include "runtime/io/sha256.h"
#include "runtime/io/tensor_file.h"
#include "runtime/schedule/text/csv.h"
#include "runtime/text/one_line.h"

namespace plumbline::conformance {
namespace {

namespace fs = std::filesystem;

/// Paths in a manifest must not lead out of its folder.
std::string plain_path(const JsonPlace& place, const std::string& text) {
  if (text.empty() || leads_out(text)) place.refuse("'" + text + "' is not a path inside the folder");
  return text;
}

void expect_format(const JsonPlace& file, const char* format) {
  if (const std::string written = file["format"].text(); written != format)
    file["format"].refuse("this plumbline reads " + std::string(format) + ", not '" + written + "'");
}

/// The contents of program.json; null if it cannot be read, which its own check reports.
nlohmann::json program_beside(const fs::path& file) try {
  const fs::path path = file.parent_path() / "program.json";
  return parse_json(read_file(path), path.string());
} catch (const InputError&) {
  return {};
}

/// The tensors must include the initial value of each parameter and buffer in program.json, in its dtype and shape.
void expect_initial_values(const fs::path& file, const TensorMap& tensors) {
  const nlohmann::json json = program_beside(file);
  if (json.is_null()) return;
  const JsonPlace program(json, (file.parent_path() / "program.json").string());
  for (const auto& [list, kind] : {std::pair{"parameters", "parameter/"}, std::pair{"buffers", "buffer/"}})
    for (const JsonPlace& item : program[list].items()) {
      const std::string key = kind + item["name"].text();
      const auto it = tensors.find(key);
      if (it == tensors.end()) throw InputError(file.string() + ": " + key + " is missing; program.json lists it");
      HostTensor form{item["dtype"].text(), item["shape"].integers(0), {}};
      if (it->second.dtype != form.dtype || it->second.shape != form.shape)
        throw InputError(file.string() + ": " + key + " is " + describe(it->second) + ", but " + describe(form) +
                         " in program.json");
    }
}

/// Throws InputError if the contents do not fit the file's name.
void read_file_of_case(const fs::path& path, const std::string& bytes) {
  const std::string name = path.filename().string();
  if (name == "schedule.csv") {
    schedule::parse_csv(bytes, path.string());
  } else if (name.ends_with(".safetensors")) {
    const TensorMap tensors = decode_tensors(bytes, path.string());
    if (name == "tensors.safetensors") expect_initial_values(path, tensors);
  } else {
    const nlohmann::json json = parse_json(bytes, path.string());
    const JsonPlace file(json, path.string());
    if (name == "case.json") expect_format(file, kCaseFormat);
    if (name == "expected.json") expect_format(file, kExpectedFormat);
    if (name == "program.json") {
      expect_format(file, kProgramFormat);
      file["opset"].integer(kOpset, kOpset);
    }
  }
}

/// Returns the file's bytes.
std::string check_file(const fs::path& folder, const fs::path& below, const JsonPlace& pinned) {
  const fs::path path = folder / below;
  if (!fs::exists(path)) throw InputError(path.string() + ": does not exist");
  std::string bytes = read_file(RegularFile(folder, below));
  read_file_of_case(path, bytes);
  const int64_t size = pinned["bytes"].integer(0);
  if (std::cmp_not_equal(bytes.size(), size))
    throw InputError(path.string() + ": has " + std::to_string(bytes.size()) + " bytes, but " + std::to_string(size) +
                     " in manifest.json");
  if (sha256(bytes) != pinned["sha256"].text())
    throw InputError(path.string() + ": changed since the export (its SHA-256 differs from that in manifest.json)");
  return bytes;
}

/// The manifest must describe a case as its case.json does.
void check_form(const fs::path& path, const std::string& bytes, const JsonPlace& said, const JsonPlace& seed) {
  const nlohmann::json json = parse_json(bytes, path.string());
  const JsonPlace file(json, path.string()), mesh = file["mesh"];
  for (const auto& [of_case, in_manifest] : {
           std::pair{file["id"], said["id"]},
           {file["truth"], said["truth"]},
           {file["schedule"]["name"], said["schedule"]},
           {file["stages"], said["stages"]},
           {file["seed"], seed},
       })
    if (in_manifest.json() != of_case.json())
      of_case.refuse("is " + excerpt(of_case.json()) + ", but " + excerpt(in_manifest.json()) + " in manifest.json");
  if (const int64_t ranks = mesh["pp"].integer(1, 1 << 20) * mesh["dp"].integer(1, 1 << 20);
      said["ranks"].json() != ranks)
    mesh.refuse("has " + std::to_string(ranks) + " ranks, but " + excerpt(said["ranks"].json()) + " in manifest.json");
}

}  // namespace

ExportCheck check_export(const fs::path& folder) {
  const fs::path path = folder / "manifest.json";
  const nlohmann::json json = parse_json(read_file(path), path.string());
  const JsonPlace manifest(json, path.string());
  expect_format(manifest, kManifestFormat);
  ExportCheck check;
  std::set<fs::path> pinned_files, case_folders;
  if (manifest["cases"].items().empty()) manifest["cases"].fail("at least one case");
  for (const JsonPlace& c : manifest["cases"].items()) {
    ++check.cases;
    const fs::path at = folder / plain_path(c["folder"], c["folder"].text());
    if (!case_folders.insert(at).second) c["folder"].refuse("appears twice");
    const JsonPlace files = c["files"];
    for (const auto& [name, pinned] : files.members()) {
      ++check.files;
      const fs::path file = at / plain_path(files, name);
      pinned_files.insert(file);
      try {
        const std::string bytes = check_file(folder, file.lexically_relative(folder), pinned);
        if (name == "case.json") check_form(file, bytes, c, manifest["seed"]);
      } catch (const Error& error) {
        check.problems.push_back(error.what());
      }
    }
    for (const char* needed : {"case.json", "program.json", "schedule.csv", "tensors.safetensors"})
      if (!files.find(needed)) files.refuse("a case without " + std::string(needed));
  }
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder)) {
    const fs::path& file = entry.path();
    const bool is_of_a_case = case_folders.contains(file.parent_path()) || file.filename() == "case.json";
    if (is_of_a_case && !fs::is_directory(entry.symlink_status()) && !pinned_files.contains(file))
      check.problems.push_back(one_line(file.string()) + ": is not in manifest.json");
  }
  return check;
}

}  // namespace plumbline::conformance
