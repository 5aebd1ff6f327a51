// From the flight logs of all ranks: who waits for whom, since when, and whether in a cycle.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "runtime/transport/flight/flight_log.h"

namespace plumbline::transport::flight {

/// The logs of the ranks that left one, by rank.
using Flights = std::map<int, std::vector<Event>>;

/// Whether the last event of any rank is a wait that timed out.
bool any_timed_out(const Flights& flights);

/// In one line: the cycle of waits, if there is one; else the ranks that others wait for and that wait for nothing
/// themselves, or are stopped, with their last event. Empty if no rank waits.
std::string who_waits(const Flights& flights);

/// A page: who_waits(), and for each rank its state and last events. Times are in seconds before the last event of all.
std::string flight_page(const Flights& flights);

}  // namespace plumbline::transport::flight
