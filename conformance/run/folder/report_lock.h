// One run at a time uses a report folder: two would judge each other's results.
#pragma once

#include <filesystem>

#include "runtime/io/descriptor.h"

namespace plumbline::conformance {

/// Holds the lock of a report folder. The lock leaves no file, and ends with the process. Move-only.
class ReportLock {
 public:
  /// Holds nothing.
  ReportLock() = default;
  /// Throws InputError if the folder cannot be read, or another process or object holds its lock.
  explicit ReportLock(const std::filesystem::path& report);

 private:
  Descriptor descriptor_;
};

}  // namespace plumbline::conformance
