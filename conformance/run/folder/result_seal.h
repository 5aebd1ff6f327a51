// What the result files of a case were when the backend said that it was done: they must not change any more, since the
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

  /// Looks at the files of `list`, in `folder` or below, and reads those of ordinary size once.
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
