#include "conformance/protocol/process/surroundings.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <system_error>

#include "runtime/error.h"

namespace plumbline::conformance {

void open_closed_streams() {
  for (int stream = 0; stream <= STDERR_FILENO; ++stream)
    if (fcntl(stream, F_GETFD) < 0) open("/dev/null", O_RDONLY);
}

void expect_surroundings() {
  constexpr rlim_t kKilobyte = 1024, kNeeded = 1024 * kKilobyte;
  rlimit stack{};
  if (getrlimit(RLIMIT_STACK, &stack) == 0 && stack.rlim_cur < kNeeded)
    throw InputError("the stack may have " + std::to_string(stack.rlim_cur / kKilobyte) + " KiB, plumbline needs " +
                     std::to_string(kNeeded / kKilobyte) + "; raise the limit: ulimit -s 8192");
  std::error_code error;
  static_cast<void>(std::filesystem::current_path(error));
  if (error) throw InputError("the working folder is gone (" + error.message() + "); change to another one");
}

}  // namespace plumbline::conformance
