#include "bench/micro/instruction_counter.h"

#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "runtime/error.h"

namespace plumbline::bench {

InstructionCounter::InstructionCounter() {
  perf_event_attr attributes{};
  attributes.size = sizeof attributes;
  attributes.type = PERF_TYPE_HARDWARE;
  attributes.config = PERF_COUNT_HW_INSTRUCTIONS;
  attributes.exclude_kernel = 1;
  attributes.exclude_hv = 1;
  descriptor_.reset(static_cast<int>(
      syscall(SYS_perf_event_open, &attributes, /*pid=*/0, /*cpu=*/-1, /*group=*/-1, PERF_FLAG_FD_CLOEXEC)));
  if (!descriptor_) unavailable_ = std::string("perf_event_open: ") + std::strerror(errno);
}

int64_t InstructionCounter::read() const {
  int64_t count = 0;
  if (::read(descriptor_.get(), &count, sizeof count) != sizeof count)
    throw Error(std::string("the instruction counter cannot be read: ") + std::strerror(errno));
  return count;
}

}  // namespace plumbline::bench
