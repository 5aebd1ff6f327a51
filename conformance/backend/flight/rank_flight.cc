#include "conformance/backend/flight/rank_flight.h"

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "conformance/backend/flight/told_waits.h"
#include "conformance/protocol/report_folder.h"
#include "runtime/error.h"
#include "runtime/transport/collectives.h"
#include "runtime/transport/flight/flight_recorder.h"
#include "runtime/transport/machine/clock_offset.h"
#include "runtime/transport/machine/host_name.h"

namespace plumbline::conformance {
namespace {

/// How long a rank whose wait has ended by its deadline waits for the logs of the others.
constexpr std::chrono::seconds kForAnswers{3};

/// Rank 0's host, and whether a rank is on another one. Rank 0's words also say that its folder exists.
struct Hosts {
  std::string of_rank_0;
  bool several = false;
};

Hosts find_hosts(transport::Transport& transport, const std::string& own, const transport::Deadline& deadline) {
  const auto all = transport::gather_bytes(transport, 0, std::as_bytes(std::span(own)), deadline);
  const bool several = std::ranges::any_of(all, [&](const std::vector<std::byte>& host) {
    return !std::ranges::equal(host, std::as_bytes(std::span(own)));
  });
  return {transport::broadcast_text(transport, own, deadline), transport::agree_on(transport, several, deadline) != 0};
}

/// In memory without a file. Null if there is no room for it: a rank without a log still answers that it has none.
std::unique_ptr<transport::flight::FlightLog> make_log(const std::filesystem::path& file) {
  using transport::flight::FlightLog;
  try {
    return file.empty() ? std::make_unique<FlightLog>() : std::make_unique<FlightLog>(file);
  } catch (const Error&) {
    return nullptr;
  }
}

}  // namespace

RankFlight::RankFlight(transport::Transport& inner, const std::filesystem::path& out,
                       const transport::Deadline& start_deadline)
    : out_(out), inner_(&inner) {
  std::error_code none;
  const std::filesystem::path file = flight_log(out, inner.rank());
  if (inner.rank() == 0) std::filesystem::create_directories(file.parent_path(), none);
  const std::string own = transport::host_name();
  const Hosts hosts = find_hosts(inner, own, start_deadline);
  log_ = make_log(own == hosts.of_rank_0 ? file : std::filesystem::path());
  if (hosts.several) share(start_deadline);
  record();
}

RankFlight::RankFlight(transport::Transport& inner, const transport::Deadline& start_deadline) : inner_(&inner) {
  log_ = make_log({});
  share(start_deadline);
  record();
}

void RankFlight::share(const transport::Deadline& start_deadline) {
  const double ahead = transport::correction(transport::measure_clock_offset(*inner_, start_deadline));
  shared_ = std::make_unique<transport::flight::SharedFlights>(*inner_, log_.get(), ahead);
  inner_ = shared_.get();
}

void RankFlight::record() {
  if (log_) recorded_ = transport::flight::record_flight(*inner_, *log_);
}

std::string RankFlight::explain_timeout(const std::filesystem::path& report_path) {
  return told_waits(shared_ ? shared_->ask(kForAnswers) : read_flights(out_, inner_->size()), /*killed=*/false, out_,
                    report_path);
}

void with_flight_log(transport::Transport& inner, transport::Clock::duration message_limit,
                     const std::function<void(transport::Transport&)>& work) {
  RankFlight flight(inner, transport::Deadline::patient(message_limit));
  try {
    work(flight.transport());
    transport::barrier(flight.transport(), transport::Deadline::patient(message_limit));
  } catch (const TimeoutError& error) {
    throw TimeoutError(error.what() + flight.explain_timeout());
  }
}

}  // namespace plumbline::conformance
