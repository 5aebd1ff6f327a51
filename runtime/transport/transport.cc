#include "runtime/transport/transport.h"

namespace plumbline::transport {

Deadline Deadline::after(Clock::duration limit) {
  const Clock::time_point now = Clock::now();
  if (limit > Clock::time_point::max() - now) return never();
  return {now + limit, limit};
}

}  // namespace plumbline::transport
