#include "conformance/protocol/run_id.h"

namespace plumbline::conformance {

std::string place_of(const RunId& run) {
  if (run.ranks == 0) return run.transport;
  return std::to_string(run.ranks) + (run.ranks == 1 ? " rank" : " ranks") +
         (run.transport.empty() ? "" : ", " + run.transport);
}

std::string to_string(const RunId& run) {
  const std::string place = place_of(run);
  return run.case_id + " x " + run.schedule + (place.empty() ? "" : " (" + place + ")");
}

}  // namespace plumbline::conformance
