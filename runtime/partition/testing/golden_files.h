// Joint graphs traced by PyTorch, with the answers of its own partitioners (testdata/README.md).
#pragma once

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "runtime/error.h"
#include "runtime/partition/parity/joint_graph_file.h"
#include "runtime/partition/testdata_path.h"

namespace plumbline::partition {

inline std::vector<std::string> golden_paths() {
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator(PLUMBLINE_PARTITION_TESTDATA))
    if (entry.path().string().ends_with(".json.gz")) paths.push_back(entry.path().string());
  std::ranges::sort(paths);
  return paths;
}

/// All files, sorted by path; read once per process.
inline const std::vector<JointGraphFile>& golden_files() {
  static const std::vector<JointGraphFile> files = [] {
    std::vector<JointGraphFile> all;
    for (const std::string& path : golden_paths()) all.push_back(read_joint_graph_file(path));
    return all;
  }();
  return files;
}

inline const JointGraphFile& golden_file(const std::string& model) {
  const auto found = std::ranges::find(golden_files(), model, &JointGraphFile::model);
  PLUMBLINE_CHECK(found != golden_files().end(), model);
  return *found;
}

}  // namespace plumbline::partition
