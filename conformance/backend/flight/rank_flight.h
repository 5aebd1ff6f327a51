// The flight log that a rank of the runtime keeps during a job, or another run.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "runtime/transport/flight/flight_log.h"
#include "runtime/transport/flight/shared_flights.h"
#include "runtime/transport/transport.h"

namespace plumbline::conformance {

class RankFlight {
 public:
  /// All ranks of a job make one together. The log is below rank 0's output folder `out`, where it outlives a killed
  /// rank; on another host than rank 0's it is in memory. A rank that cannot write one keeps none, since the run does
  /// not depend on it. `patience` limits the wait for the other ranks, which start at different times.
  RankFlight(transport::Transport& inner, const std::filesystem::path& out, const transport::Deadline& patience);

  /// For a run without an output folder: every log is in memory, and ranks are asked for theirs.
  RankFlight(transport::Transport& inner, const transport::Deadline& patience);

  /// The transport whose messages are logged.
  transport::Transport& transport() { return recorded_ ? *recorded_ : *inner_; }

  /// After a wait of this rank has thrown TimeoutError: told_waits() of all ranks, with the page at `page`. Logs of
  /// ranks on one host are read from their files; ranks on several hosts are asked. Without an output folder there is
  /// no page.
  std::string told(const std::filesystem::path& page = {});

 private:
  void share(const transport::Deadline& patience);
  void record();

  std::filesystem::path out_;
  transport::Transport* inner_;
  std::unique_ptr<transport::flight::FlightLog> log_;
  std::unique_ptr<transport::flight::SharedFlights> shared_;
  std::unique_ptr<transport::Transport> recorded_;
};

/// Executes `work` over a transport whose messages are logged in memory; all ranks call it together. A TimeoutError of
/// `work` then also says who waited for whom: a rank that is done stays to answer until all are. `message_limit` is the
/// longest wait for a message in `work`; the waits for other ranks before and after it are patient ones.
void with_flight_log(transport::Transport& inner, transport::Clock::duration message_limit,
                     const std::function<void(transport::Transport&)>& work);

}  // namespace plumbline::conformance
