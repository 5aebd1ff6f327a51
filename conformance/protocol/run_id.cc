#include "conformance/protocol/run_id.h"

#include "runtime/text/counted.h"

namespace plumbline::conformance {

std::string place_of(const RunId& run) {
  if (run.ranks == 0) return run.transport;
  return counted(run.ranks, "rank") + (run.transport.empty() ? "" : ", " + run.transport);
}

std::string to_string(const RunId& run) {
  const std::string place = place_of(run);
  return run.case_id + " x " + run.schedule + (place.empty() ? "" : " (" + place + ")");
}

}  // namespace plumbline::conformance
