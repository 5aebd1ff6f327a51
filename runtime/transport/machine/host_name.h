// The name of the machine, by which ranks find out which of them share one.
#pragma once

#include <string>

namespace plumbline::transport {

/// As gethostname() tells it. Empty if it cannot be told.
std::string host_name();

}  // namespace plumbline::transport
