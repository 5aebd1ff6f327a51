// Exchanges the flight logs of ranks on several hosts, which cannot read each other's files: a rank whose wait has
// timed out asks the others for their logs, and a rank that waits answers.
#pragma once

#include <cstddef>
#include <vector>

#include "runtime/transport/flight/who_waits.h"
#include "runtime/transport/forwarding_transport.h"

namespace plumbline::transport::flight {

/// Every rank has one, as the inner transport of its flight recorder. A wait polls, since it also looks for questions.
/// The destructor withdraws the rank's outstanding operations, since receives of questions are among them.
class SharedFlights : public ForwardingTransport {
 public:
  /// `inner` and this rank's `log` must outlive it; null: the rank keeps no log. The rank's clock is `ahead` seconds
  /// ahead of rank 0's.
  SharedFlights(Transport& inner, const FlightLog* log, double ahead);
  ~SharedFlights() override { withdraw(); }

  void wait(Request& request, const Deadline& deadline, const WaitContext& context) override;
  void withdraw() noexcept override;

  /// For a rank whose wait has thrown TimeoutError, and which aborts next. Returns its own log and those of the ranks
  /// that answer within `patience`, in rank 0's time; a rank that is stopped or computes does not answer.
  Flights ask(Clock::duration patience);

 private:
  struct Peer {
    std::byte question{};           ///< the peer's question, whose value means nothing
    Request asked;                  ///< the receive of the question
    std::vector<std::byte> answer;  ///< this rank's answer
    Request answering;              ///< the send of the answer
  };

  std::vector<std::byte> own_answer() const;
  void answer_questions();

  const FlightLog* log_;
  double ahead_;
  std::vector<Peer> peers_;
};

}  // namespace plumbline::transport::flight
