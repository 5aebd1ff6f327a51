// Why ranks of the runtime waited until their deadline, from the flight logs that they left.
#pragma once

#include <filesystem>
#include <string>

namespace plumbline::conformance {

/// If a rank whose log is below the output folder `out` ended in a wait (or `killed`: all were, at a deadline of the
/// supervisor), writes the page about it (flight_page() of who_waits.h) and returns its first line and the page's path,
/// as a clause to follow a reason: "; a cycle of waits: ... (see FILE)". Else returns nothing, as for a backend without
/// logs.
std::string told_waits(const std::filesystem::path& out, int ranks, bool killed, const std::filesystem::path& page);

}  // namespace plumbline::conformance
