// Writes traces as Chrome trace events, the JSON that Perfetto (ui.perfetto.dev) and chrome://tracing open.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "runtime/schedule/simulation/simulation.h"

namespace plumbline::conformance {

struct ChromeTraceOptions {
  double microseconds_per_unit = 1000;  ///< of the traces' time: 1000 if they are in ms
  /// Drawn in the first trace as arrows from the producer to the consumer.
  std::span<const schedule::Transfer> transfers = {};
};

/// One process for each trace, one thread for each rank, one complete event for each action. Its arguments are stage,
/// micro-batch, kind, position in the rank's list and, for a member of a group, in_group.
std::string chrome_trace(std::span<const schedule::Trace> traces, const ChromeTraceOptions& options = {});

}  // namespace plumbline::conformance
