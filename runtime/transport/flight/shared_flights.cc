#include "runtime/transport/flight/shared_flights.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <span>
#include <thread>
#include <utility>

namespace plumbline::transport::flight {
namespace {

constexpr int64_t kQuestionTag = -5, kAnswerTag = -6;
constexpr int kPolls = 20;  // before a wait sleeps between polls
constexpr std::chrono::microseconds kBetweenPolls{50};
constexpr std::chrono::milliseconds kBetweenQuestions{200};

size_t answer_bytes() { return sizeof(double) + kFlightLogBytes; }

/// The events of an answer, in rank 0's time; nothing for a rank that has no log.
std::optional<std::vector<Event>> events_of(std::span<const std::byte> answer) {
  double ahead = 0;
  std::memcpy(&ahead, answer.data(), sizeof ahead);
  std::optional<std::vector<Event>> events = decode_flight_log(answer.subspan(sizeof ahead));
  if (events)
    for (Event& event : *events) event.seconds -= ahead;
  return events;
}

}  // namespace

SharedFlights::SharedFlights(Transport& inner, const FlightLog* log, double ahead)
    : ForwardingTransport(inner), log_(log), ahead_(ahead), peers_(inner.size()) {}

void SharedFlights::wait(Request& request, const Deadline& deadline, const WaitContext& context) {
  for (int polls = 0; !ForwardingTransport::test(request); ++polls) {
    if (polls < kPolls) continue;
    if (deadline.passed()) return ForwardingTransport::wait(request, deadline, context);  // throws
    answer_questions();
    std::this_thread::sleep_for(kBetweenPolls);
  }
}

void SharedFlights::withdraw() noexcept {
  ForwardingTransport::withdraw();
  for (Peer& peer : peers_) peer.asked = peer.answering = Request();
}

std::vector<std::byte> SharedFlights::own_answer() const {
  std::vector<std::byte> answer(answer_bytes());
  std::memcpy(answer.data(), &ahead_, sizeof ahead_);
  if (log_ != nullptr) std::ranges::copy(log_->bytes(), answer.begin() + sizeof ahead_);
  return answer;
}

void SharedFlights::answer_questions() {
  for (int rank = 0; rank < size(); ++rank) {
    if (rank == this->rank()) continue;
    Peer& peer = peers_[rank];
    if (peer.asked.empty()) peer.asked = irecv(&peer.question, sizeof peer.question, rank, kQuestionTag);
    if (!test(peer.answering) || !test(peer.asked)) continue;
    peer.answer = own_answer();
    peer.answering = isend(peer.answer.data(), peer.answer.size(), rank, kAnswerTag);
  }
}

Flights SharedFlights::ask(Clock::duration patience) {
  withdraw();  // the wait has withdrawn everything, questions as well
  const std::byte question{};
  std::vector<Request> questions(size()), receives(size());
  std::vector<std::vector<std::byte>> answers(size(), std::vector<std::byte>(answer_bytes()));
  answers[rank()] = own_answer();
  for (int rank = 0; rank < size(); ++rank) {
    if (rank == this->rank()) continue;
    receives[rank] = irecv(answers[rank].data(), answers[rank].size(), rank, kAnswerTag);
  }
  // More than once: a question is lost if it has just come to a rank when that withdraws its receives.
  Clock::time_point next_question = Clock::now();
  const auto put_questions = [&] {
    if (Clock::now() < next_question) return;
    for (int rank = 0; rank < size(); ++rank)
      if (!receives[rank].empty() && test(questions[rank]))
        questions[rank] = isend(&question, sizeof question, rank, kQuestionTag);
    next_question = Clock::now() + kBetweenQuestions;
  };
  const auto all_there = [&] {
    bool all = true;
    for (Request& receive : receives) all = test(receive) && all;
    return all;
  };
  const Deadline deadline = Deadline::after(patience);
  while (!all_there() && !deadline.passed()) {
    put_questions();
    answer_questions();
    std::this_thread::sleep_for(kBetweenPolls);
  }
  Flights flights;
  for (int rank = 0; rank < size(); ++rank)
    if (receives[rank].empty())
      if (auto events = events_of(answers[rank])) flights[rank] = std::move(*events);
  withdraw();
  return flights;
}

}  // namespace plumbline::transport::flight
