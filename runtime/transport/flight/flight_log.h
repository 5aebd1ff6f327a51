// The last events of a rank, in a file that outlives its process: written through shared memory, so that a rank that is
// killed, or stopped, or hangs needs to do nothing for it. No torch.
//
// A log holds kFlightEvents events; a new one replaces the oldest.
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
  Send,      ///< posted
  Receive,   ///< posted
  Blocked,   ///< a wait whose message was not complete
  Done,      ///< the end of such a wait
  TimedOut,  ///< the end of such a wait by its deadline
  Stopped,   ///< no event of the rank: the reader of its log found its process stopped (SIGSTOP, a debugger)
};

struct Event {
  double seconds = 0;  ///< on the steady clock
  EventKind kind = EventKind::Send;
  bool receives = false;  ///< the message of the event is one to this rank
  int32_t peer = 0;
  int64_t tag = 0;
  uint64_t bytes = 0;
  char what[88] = {};  ///< of Blocked: the wait's context, cut to fit; ends in 0
};

/// Writes the log of one rank. Not thread-safe.
class FlightLog {
 public:
  /// In the memory of this process only, for a rank whose files no other one could read. Throws Error without memory.
  FlightLog();
  /// Replaces `file`. Throws Error if it cannot be written.
  explicit FlightLog(const std::filesystem::path& file);
  ~FlightLog();
  FlightLog(const FlightLog&) = delete;
  FlightLog& operator=(const FlightLog&) = delete;

  void add(const Event& event);

  /// As they are in the file, kFlightLogBytes.
  std::span<const std::byte> bytes() const;

  struct Memory;

 private:
  Memory* memory_;
};

/// The bytes of every log.
extern const size_t kFlightLogBytes;

/// The events in the bytes of a log, oldest first; nullopt if they are none. An event that was being written is left
/// out, and bytes that are none.
std::optional<std::vector<Event>> decode_flight_log(std::span<const std::byte> bytes);

/// The same of a file, and a last event Stopped if the process that writes it is stopped on this host now.
std::optional<std::vector<Event>> read_flight_log(const std::filesystem::path& file);

}  // namespace plumbline::transport::flight
