// Traces as Chrome trace events, the JSON that Perfetto (ui.perfetto.dev) and chrome://tracing open.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "runtime/schedule/simulation/simulation.h"

namespace plumbline::conformance {

struct ChromeTraceOptions {
  double microseconds_per_unit = 1000;  ///< of the traces' time: 1000 when they are in ms
  /// Arrows from what was sent to what needed it, in the first trace.
  std::span<const schedule::Transfer> transfers = {};
};

/// One process for each trace, one thread for each rank, a complete event for each action with its stage, micro-batch,
/// kind and position in the rank's list as arguments. Members of a group say so.
std::string chrome_trace(std::span<const schedule::Trace> traces, const ChromeTraceOptions& options = {});

}  // namespace plumbline::conformance
