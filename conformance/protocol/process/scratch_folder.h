// A temporary folder that goes even if a signal ends this process.
//
// A process beside this one, the keeper, waits for the end of a pipe that this process and its guards hold, and removes
// the folder then. A guard holds it until its program has ended, so that no program writes there afterwards.
#pragma once

#include <sys/types.h>

#include <filesystem>

#include "runtime/io/temporary_folder.h"

namespace plumbline::conformance {

class ScratchFolder {
 public:
  /// Throws Error as TemporaryFolder does, and if there is no process or pipe left. One at a time.
  ScratchFolder();
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  const std::filesystem::path& path() const { return folder_.path(); }
  std::filesystem::path operator/(const std::filesystem::path& name) const { return folder_ / name; }

  /// The end of the pipe that guards hold; -1: there is no folder.
  static int lifeline();
  static bool is_keeper(pid_t pid);
  /// Removes the folder, if there is one, once all guards have ended; a signal handler may call it.
  static void remove();

 private:
  const TemporaryFolder folder_;
};

}  // namespace plumbline::conformance
