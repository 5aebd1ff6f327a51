// Why ranks of the runtime waited until their deadline, from the flight logs that they left.
#pragma once

#include <filesystem>
#include <string>

#include "runtime/transport/flight/who_waits.h"

namespace plumbline::conformance {

/// The logs of ranks below the output folder `out`, by rank.
transport::flight::Flights read_flights(const std::filesystem::path& out, int ranks);

/// Returns who waited for whom, as a clause to follow a reason: "; a cycle of waits: ... (see FILE)". FILE is `page`,
/// below `out`, to which it writes flight_page() (who_waits.h); the clause has no FILE if that fails or `out` does not
/// exist, since it may be on another host. Returns "" if no rank waited, or if no wait ended at its deadline. `killed`:
/// the supervisor killed all ranks at its own deadline, so that any wait counts.
std::string told_waits(const transport::flight::Flights& flights, bool killed, const std::filesystem::path& out,
                       const std::filesystem::path& page);

}  // namespace plumbline::conformance
