// Writes traces as Chrome trace events, the JSON that Perfetto (ui.perfetto.dev) and chrome://tracing open.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "runtime/schedule/simulation/simulation.h"

namespace plumbline::conformance {

struct ChromeTraceOptions {
  double microseconds_per_unit = 1000;  ///< the traces' unit of time, in microseconds: 1000 for ms
  /// Drawn as arrows in the first trace; a transfer whose producer or consumer the trace lacks is left out.
  std::span<const schedule::Transfer> transfers = {};
};

/// Returns the JSON: one process for each trace, one thread for each rank, one complete event for each action. The
/// arguments of an event are stage, microbatch, kind, position in the rank's list of actions and, for an action that
/// overlaps another, in_group.
std::string chrome_trace(std::span<const schedule::Trace> traces, const ChromeTraceOptions& options = {});

}  // namespace plumbline::conformance
