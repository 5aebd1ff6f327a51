// The state of a case's result files when the backend said that the case was done. They must not change any more: the
// verdict is about them, and `plumbline check` reads them again.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "runtime/io/regular_file.h"

namespace plumbline::conformance {

class ResultSeal {
 public:
  using List = std::function<std::vector<std::filesystem::path>()>;

  /// `list` returns the files of the case, in `folder` or below; why_broken() calls it again. Reads each file of
  /// ordinary size once.
  ResultSeal(std::filesystem::path folder, List list);

  /// Why the files are not as they were, in one line that names the first one that was changed, removed or added; empty
  /// if they are. A file that was written again with the same bytes is as it was.
  std::string why_broken() const;

 private:
  struct State {
    bool is_there = false;  ///< as a regular file that can be read
    FileIdentity identity;
    uint64_t hash = 0;  ///< FNV-1a of the bytes; of a large file 0

    bool operator==(const State& other) const;
  };
  State state_of(const std::filesystem::path& file) const;

  std::filesystem::path folder_;
  List list_;
  std::map<std::filesystem::path, State> states_;
};

}  // namespace plumbline::conformance
