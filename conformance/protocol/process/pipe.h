// A pipe between processes.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string>

#include "runtime/error.h"
#include "runtime/io/descriptor.h"

namespace plumbline::conformance {

/// Programs that this process starts do not inherit its ends.
struct Pipe {
  Descriptor read_end;
  Descriptor write_end;

  /// Throws Error if no descriptor is left.
  Pipe() {
    std::array<int, 2> ends;
    if (pipe2(ends.data(), O_CLOEXEC) != 0) throw Error(std::string("cannot create a pipe: ") + std::strerror(errno));
    read_end.reset(ends[0]);
    write_end.reset(ends[1]);
  }
};

}  // namespace plumbline::conformance
