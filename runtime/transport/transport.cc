#include "runtime/transport/transport.h"

#include <algorithm>

namespace plumbline::transport {

Deadline Deadline::after(Clock::duration limit) {
  const Clock::time_point now = Clock::now();
  if (limit > Clock::time_point::max() - now) return {Clock::time_point::max(), limit};
  return {now + limit, limit};
}

Deadline Deadline::patient(Clock::duration message_limit) {
  return after(std::chrono::minutes(10) + 20 * std::min<Clock::duration>(message_limit, std::chrono::hours(24)));
}

}  // namespace plumbline::transport
