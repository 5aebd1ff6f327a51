#include "runtime/transport/machine/host_name.h"

#include <unistd.h>

namespace plumbline::transport {

std::string host_name() {
  char text[256] = {};
  return gethostname(text, sizeof text - 1) == 0 ? text : "";
}

}  // namespace plumbline::transport
