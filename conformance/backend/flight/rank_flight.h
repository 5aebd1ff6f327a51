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

/// For one thread: that of the rank's transport.
class RankFlight {
 public:
  /// All ranks of a job construct one together, since the constructor exchanges messages over `inner`, which must
  /// outlive this object. The log is a file below rank 0's output folder `out`, where it outlives a killed rank; on
  /// another host than rank 0's it is in memory. A rank that cannot make its log keeps none, since the run does not
  /// depend on it.
  ///
  /// `start_deadline` is the deadline for the messages of the other ranks, which start at different times. Throws as
  /// Transport::wait() does, such as TimeoutError if a rank has not started by then.
  RankFlight(transport::Transport& inner, const std::filesystem::path& out, const transport::Deadline& start_deadline);

  /// The same for a run without an output folder: every log is in memory, and ranks are asked for theirs.
  RankFlight(transport::Transport& inner, const transport::Deadline& start_deadline);

  /// The transport whose messages are logged; lives as long as this object.
  transport::Transport& transport() { return recorded_ ? *recorded_ : *inner_; }

  /// Call after a wait over transport() has thrown TimeoutError, and before the rank aborts. Returns told_waits() of
  /// all ranks: a clause to append to the error's text, such as "; a cycle of waits: ... (see FILE)". It is empty if no
  /// log ends in a wait that has timed out. Writes the page about the waits to `report_path`, which is below the output
  /// folder; without such a folder on this host there is no page.
  ///
  /// The logs of ranks on one host are read from their files. Ranks on several hosts, or without an output folder, are
  /// asked for theirs: that takes at most 3 seconds, withdraws the outstanding operations of this rank, and throws as
  /// Transport::test() does, such as PeerError.
  std::string explain_timeout(const std::filesystem::path& report_path = {});

 private:
  void share(const transport::Deadline& start_deadline);
  void record();

  std::filesystem::path out_;
  transport::Transport* inner_;
  std::unique_ptr<transport::flight::FlightLog> log_;
  std::unique_ptr<transport::flight::SharedFlights> shared_;
  std::unique_ptr<transport::Transport> recorded_;
};

/// Executes `work` over a transport whose messages are logged in memory. All ranks call it together: each first
/// constructs a RankFlight, and each whose work has returned stays in a barrier until all are done, to answer the
/// others. `message_limit` is the longest wait for a message in `work`; the waits before and after `work` have
/// Deadline::patient(message_limit).
///
/// If `work` or the barrier throws TimeoutError, throws TimeoutError with explain_timeout() added to the text. Every
/// other exception, and those of the RankFlight, pass unchanged. The caller must then abort the other ranks.
void with_flight_log(transport::Transport& inner, transport::Clock::duration message_limit,
                     const std::function<void(transport::Transport&)>& work);

}  // namespace plumbline::conformance
