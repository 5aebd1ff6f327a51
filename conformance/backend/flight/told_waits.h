// Why ranks of the runtime waited until their deadline, from the flight logs that they left.
#pragma once

#include <filesystem>
#include <string>

#include "runtime/transport/flight/who_waits.h"

namespace plumbline::conformance {

/// The logs of ranks below the output folder `out`, by rank.
transport::flight::Flights read_flights(const std::filesystem::path& out, int ranks);

/// If a rank ended in a wait (or `killed`: all were, at a deadline of the supervisor), writes the page about it
/// (flight_page() of who_waits.h), which is below `out`, and returns its first line and the page's path, as a clause to
/// follow a reason: "; a cycle of waits: ... (see FILE)". Without `out`, which may be on another host, there is no
/// page. Else returns nothing, as for a backend without logs.
std::string told_waits(const transport::flight::Flights& flights, bool killed, const std::filesystem::path& out,
                       const std::filesystem::path& page);

}  // namespace plumbline::conformance
