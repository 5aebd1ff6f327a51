#include "runtime/transport/flight/who_waits.h"

#include <algorithm>
#include <cstdio>
#include <set>

#include "runtime/text/join.h"
#include "runtime/text/one_line.h"
#include "runtime/text/significant.h"

namespace plumbline::transport::flight {
namespace {

constexpr size_t kShownEvents = 24;

bool is_stopped(const Flights& flights, int rank) {
  const auto flight = flights.find(rank);
  return flight != flights.end() && !flight->second.empty() && flight->second.back().kind == EventKind::Stopped;
}

/// The last event of the rank itself; null if it has none.
const Event* last_of(const Flights& flights, int rank) {
  const auto flight = flights.find(rank);
  if (flight == flights.end()) return nullptr;
  const size_t own = flight->second.size() - is_stopped(flights, rank);
  return own == 0 ? nullptr : &flight->second[own - 1];
}

/// The wait in which a rank is, or was when its deadline passed; null: in none.
const Event* wait_of(const Flights& flights, int rank) {
  if (is_stopped(flights, rank)) return nullptr;
  const Event* last = last_of(flights, rank);
  return last != nullptr && (last->kind == EventKind::Blocked || last->kind == EventKind::TimedOut) ? last : nullptr;
}

double end_of(const Flights& flights) {
  double end = 0;
  for (const auto& [rank, events] : flights)
    if (!events.empty()) end = std::max(end, events.back().seconds);
  return end;
}

/// A wait's begin: that of the event before a deadline.
double since(const std::vector<Event>& events) {
  if (events.size() > 1 && events.back().kind == EventKind::TimedOut) return events[events.size() - 2].seconds;
  return events.back().seconds;
}

std::string ago(double seconds) { return significant(std::max(0.0, seconds), 3) + " s"; }

std::string name(int rank) { return "rank " + std::to_string(rank); }

std::string wait_text(const Flights& flights, int rank) {
  const std::vector<Event>& events = flights.at(rank);
  const Event& wait = events.back();
  return name(rank) + " waits for " + name(wait.peer) + (wait.is_receive ? "" : " to take a message") + " since " +
         ago(end_of(flights) - since(events)) + " (" + one_line(wait.what) + ")";
}

std::string event_text(const Event& event) {
  const std::string peer = name(event.peer),
                    size = std::to_string(event.bytes) + " bytes, tag " + std::to_string(event.tag);
  const std::string message = event.is_receive ? "from " + peer : "to " + peer;
  switch (event.kind) {
    case EventKind::Send:
      return "a send " + message + " is posted: " + size;
    case EventKind::Receive:
      return "a receive " + message + " is posted: " + size;
    case EventKind::Blocked:
      return "a wait for the message " + message + ": " + one_line(event.what);
    case EventKind::Done:
      return "the message " + message + " is complete";
    case EventKind::TimedOut:
      return "the end of the wait for the message " + message + ": " + one_line(event.what);
    case EventKind::Stopped:
      return "the process is stopped";
  }
  return "an unknown event";
}

/// A rank that waits for nothing, or is stopped.
std::string idle_text(const Flights& flights, int rank) {
  const Event* last = last_of(flights, rank);
  const bool stopped = is_stopped(flights, rank);
  if (last == nullptr) return name(rank) + (stopped ? ", whose process is stopped" : ", which left no events");
  const std::string event = ago(end_of(flights) - last->seconds) + " before: " + event_text(*last) + ")";
  if (stopped) return name(rank) + ", whose process is stopped (its last event, " + event;
  return name(rank) + ", which waits for nothing (its last event, " + event;
}

/// The ranks of a cycle of waits, in its order; empty if there is none. Each rank waits for one other at most.
std::vector<int> cycle_in(const Flights& flights) {
  std::set<int> finished;
  for (const auto& [start, events] : flights) {
    std::vector<int> path;
    int rank = start;
    while (wait_of(flights, rank) != nullptr && !finished.contains(rank)) {
      const auto again = std::ranges::find(path, rank);
      if (again != path.end()) return {again, path.end()};
      path.push_back(rank);
      rank = wait_of(flights, rank)->peer;
    }
    finished.insert(path.begin(), path.end());
  }
  return {};
}

/// Whether two ranks wait for one message, which one sends and the other receives: no deadlock, since that message
/// needs no other.
bool is_one_message(const Flights& flights, const std::vector<int>& cycle) {
  if (cycle.size() != 2) return false;
  const Event &a = *wait_of(flights, cycle[0]), &b = *wait_of(flights, cycle[1]);
  return a.is_receive != b.is_receive && a.tag == b.tag;
}

}  // namespace

bool any_timed_out(const Flights& flights) {
  return std::ranges::any_of(flights, [](const auto& flight) {
    return !flight.second.empty() && flight.second.back().kind == EventKind::TimedOut;
  });
}

std::string who_waits(const Flights& flights) {
  std::vector<std::string> parts;
  if (const std::vector<int> cycle = cycle_in(flights); !cycle.empty()) {
    for (const int rank : cycle) parts.push_back(wait_text(flights, rank));
    if (is_one_message(flights, cycle))
      return "a message that both sides wait for, so one of them was stopped, or it is lost: " + join(parts);
    return "a cycle of waits: " + join(parts);
  }
  std::map<int, std::vector<int>> waiting;  // by the rank at the end of a chain of waits
  for (const auto& [rank, events] : flights) {
    int end = rank;
    while (const Event* wait = wait_of(flights, end)) end = wait->peer;
    if (end != rank) waiting[end].push_back(rank);
  }
  for (const auto& [end, ranks] : waiting) {
    std::vector<std::string> names;
    for (const int rank : ranks) names.push_back(std::to_string(rank));
    parts.push_back((ranks.size() == 1 ? "rank " : "ranks ") + join(names) + (ranks.size() == 1 ? " waits" : " wait") +
                    " for " + idle_text(flights, end));
  }
  return join(parts, "; ");
}

std::string flight_page(const Flights& flights) {
  const std::string summary = who_waits(flights);
  std::string page = (summary.empty() ? "no rank waits" : summary) + "\n";
  const double end = end_of(flights);
  for (const auto& [rank, events] : flights) {
    page += "\n" + (wait_of(flights, rank) ? wait_text(flights, rank) : idle_text(flights, rank)) + "\n";
    const size_t first = events.size() > kShownEvents ? events.size() - kShownEvents : 0;
    for (size_t i = first; i < events.size(); ++i) {
      char time[32];
      std::snprintf(time, sizeof time, "  %12.6f s  ", events[i].seconds - end);
      page += time + event_text(events[i]) + "\n";
    }
  }
  return page;
}

}  // namespace plumbline::transport::flight
