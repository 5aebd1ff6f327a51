// A transport that writes what it does to a rank's flight log: every message that is posted, and every wait that
// blocks.
#pragma once

#include <memory>

#include "runtime/transport/flight/flight_log.h"
#include "runtime/transport/transport.h"

namespace plumbline::transport::flight {

/// `inner` and `log` must outlive the result. Recording a message does not block, and allocates only while the number
/// of outstanding requests exceeds its maximum so far.
std::unique_ptr<Transport> record_flight(Transport& inner, FlightLog& log);

}  // namespace plumbline::transport::flight
