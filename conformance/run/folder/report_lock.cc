#include "conformance/run/folder/report_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "runtime/error.h"

namespace plumbline::conformance {

ReportLock::ReportLock(const std::filesystem::path& report)
    : descriptor_(open(report.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
  const std::string folder = "--report: folder '" + report.string() + "' ";
  if (descriptor_ < 0) throw InputError(folder + "cannot be read (" + std::strerror(errno) + ")");
  // A file system without locks, as some networks have, is no reason to refuse the run.
  if (flock(descriptor_, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return;
  close(descriptor_);
  throw InputError(folder + "is in use by another run; wait for its end, or give another folder");
}

ReportLock::~ReportLock() {
  if (descriptor_ >= 0) close(descriptor_);
}

ReportLock::ReportLock(ReportLock&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}

}  // namespace plumbline::conformance
