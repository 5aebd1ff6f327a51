// A flight log: the last events of a rank in a file that outlives the rank's process. The file is mapped into memory,
// so an event is in the file as soon as add() returns: a rank that is killed, is stopped or hangs need not write
// anything. Does not need LibTorch.
//
// A log is a ring of kFlightEvents events: a new event replaces the oldest. Readers of a log that is full get
// kFlightEvents - 1 events, since the writer may have been replacing the oldest.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <vector>

namespace plumbline::transport::flight {

inline constexpr size_t kFlightEvents = 256;

enum class EventKind : uint8_t {
  Send,      ///< a send was posted
  Receive,   ///< a receive was posted
  Blocked,   ///< a wait began for a message that was not complete
  Done,      ///< that wait ended: the message is complete
  TimedOut,  ///< that wait ended at its deadline
  Stopped,   ///< read_flight_log() found the process stopped (SIGSTOP, a debugger); a rank never adds it
};

struct Event {
  double seconds = 0;  ///< on the steady clock of the rank's host (clock_seconds())
  EventKind kind = EventKind::Send;
  bool is_receive = false;  ///< the message goes from the peer to this rank; false: to the peer
  int32_t peer = 0;         ///< the rank at the other end of the message
  int64_t tag = 0;          ///< of the message
  uint64_t bytes = 0;       ///< of the message
  char what[88] = {};       ///< of Blocked, Done and TimedOut: the wait's context, cut to fit; ends in 0
};

/// Writes the log of one rank. Not thread-safe.
class FlightLog {
 public:
  /// Keeps the log in memory of this process, without a file: for a rank whose files the readers cannot reach. Throws
  /// Error if no memory can be mapped.
  FlightLog();
  /// Creates or empties `file`, allocates its room and maps it. Throws Error if that fails, also for a link.
  explicit FlightLog(const std::filesystem::path& file);
  ~FlightLog();
  FlightLog(const FlightLog&) = delete;
  FlightLog& operator=(const FlightLog&) = delete;

  /// Adds a copy of the event. Does not allocate and makes no system call.
  void add(const Event& event);

  /// Returns the bytes of the log as in its file, kFlightLogBytes of them; valid as long as the log.
  std::span<const std::byte> bytes() const;

  struct Memory;

 private:
  Memory* memory_;
};

/// The size of every log in bytes.
extern const size_t kFlightLogBytes;

/// Returns the events of a log, oldest first; nullopt if `bytes` are not a log (another size, another magic number).
/// Leaves out an event that the writer may not have finished, and one whose bytes have no valid kind or direction.
std::optional<std::vector<Event>> decode_flight_log(std::span<const std::byte> bytes);

/// Returns the events of the log in `file`; nullopt if the file cannot be read or is not a log. Appends an event of
/// kind Stopped, at the present time, if the process that wrote the log is stopped on this host now.
std::optional<std::vector<Event>> read_flight_log(const std::filesystem::path& file);

}  // namespace plumbline::transport::flight
