#include "conformance/run/folder/report_lock.h"

#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>
#include <cstring>

#include "runtime/error.h"

namespace plumbline::conformance {

ReportLock::ReportLock(const std::filesystem::path& report)
    : descriptor_(open(report.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
  const std::string folder = "--report: folder '" + report.string() + "' ";
  if (!descriptor_) throw InputError(folder + "cannot be read (" + std::strerror(errno) + ")");
  // A file system without locks, as some networks have, is no reason to refuse the run.
  if (flock(descriptor_.get(), LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return;
  throw InputError(folder + "is in use by another run; wait for its end, or give another folder");
}

}  // namespace plumbline::conformance
