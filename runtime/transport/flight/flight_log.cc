#include "runtime/transport/flight/flight_log.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <memory>
#include <string>
#include <type_traits>

#include "runtime/clock.h"
#include "runtime/error.h"
#include "runtime/io/descriptor.h"
#include "runtime/io/regular_file.h"

namespace plumbline::transport::flight {

static_assert(std::is_trivially_copyable_v<Event>);

struct FlightLog::Memory {
  char magic[16];
  int64_t process;              ///< that writes it; 0: none that a reader of the file could look at
  std::atomic<uint64_t> added;  ///< events so far; the newest is at (added - 1) % kFlightEvents
  Event events[kFlightEvents];
};

namespace {

constexpr char kMagic[16] = "plumb-flight/2";

/// Those of a file. The same layout as Memory without the atomic, which cannot be copied.
struct Copy {
  char magic[16];
  int64_t process;
  uint64_t added;
  Event events[kFlightEvents];
};
static_assert(sizeof(Copy) == sizeof(FlightLog::Memory));

bool is_stopped(int64_t process) {
  if (process <= 0) return false;
  std::ifstream status("/proc/" + std::to_string(process) + "/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("State:")) return line.find_first_of("Tt", 6) == line.find_first_not_of(" \t", 6);
  return false;
}

/// Whether bytes of a file have values that the types of an event's members have.
bool is_event(const Event& bytes) {
  uint8_t kind, is_receive;
  std::memcpy(&kind, &bytes.kind, sizeof kind);
  std::memcpy(&is_receive, &bytes.is_receive, sizeof is_receive);
  return kind <= static_cast<uint8_t>(EventKind::TimedOut) && is_receive <= 1;
}

}  // namespace

FlightLog::FlightLog() {
  void* memory = mmap(nullptr, sizeof(Memory), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw Error(std::string("no memory for a flight log: ") + std::strerror(errno));
  memory_ = static_cast<Memory*>(memory);
  std::memcpy(memory_->magic, kMagic, sizeof kMagic);
}

FlightLog::FlightLog(const std::filesystem::path& file) {
  const auto fail = [&](const char* call) {
    throw Error("cannot write the flight log " + file.string() + ": " + call + ": " + std::strerror(errno));
  };
  const Descriptor descriptor(open(file.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0666));
  if (!descriptor) fail("open");
  void* memory = MAP_FAILED;
  // Space is allocated now: a full disk would end the process by a signal later.
  const int error = posix_fallocate(descriptor.get(), 0, sizeof(Memory));
  if (error == 0) memory = mmap(nullptr, sizeof(Memory), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor.get(), 0);
  if (error != 0) errno = error;
  if (memory == MAP_FAILED) fail(error != 0 ? "posix_fallocate" : "mmap");
  memory_ = static_cast<Memory*>(memory);
  memory_->process = getpid();
  std::memcpy(memory_->magic, kMagic, sizeof kMagic);
}

FlightLog::~FlightLog() { munmap(memory_, sizeof(Memory)); }

void FlightLog::add(const Event& event) {
  const uint64_t index = memory_->added.load(std::memory_order_relaxed);
  memory_->events[index % kFlightEvents] = event;
  memory_->added.store(index + 1, std::memory_order_release);
}

std::span<const std::byte> FlightLog::bytes() const {
  return {reinterpret_cast<const std::byte*>(memory_), sizeof(Memory)};
}

const size_t kFlightLogBytes = sizeof(FlightLog::Memory);

std::optional<std::vector<Event>> decode_flight_log(std::span<const std::byte> bytes) {
  if (bytes.size() != sizeof(Copy)) return std::nullopt;
  const auto copy = std::make_unique<Copy>();
  std::memcpy(static_cast<void*>(copy.get()), bytes.data(), bytes.size());
  if (std::memcmp(copy->magic, kMagic, sizeof kMagic) != 0) return std::nullopt;
  const uint64_t added = copy->added;
  // The writer may have ended while it replaced the oldest one.
  const uint64_t first = added >= kFlightEvents ? added - kFlightEvents + 1 : 0;
  std::vector<Event> events;
  for (uint64_t i = first; i < added; ++i) {
    const Event& event = copy->events[i % kFlightEvents];
    if (!is_event(event)) continue;
    events.push_back(event);
    events.back().what[sizeof Event::what - 1] = 0;
  }
  return events;
}

std::optional<std::vector<Event>> read_flight_log(const std::filesystem::path& file) {
  try {
    const RegularFile opened(file.parent_path(), file.filename());
    if (opened.size() != kFlightLogBytes) return std::nullopt;
    std::vector<std::byte> bytes(kFlightLogBytes);
    opened.read(0, bytes.data(), bytes.size());
    std::optional<std::vector<Event>> events = decode_flight_log(bytes);
    int64_t process;
    std::memcpy(&process, bytes.data() + offsetof(Copy, process), sizeof process);
    if (events && is_stopped(process)) events->push_back({.seconds = clock_seconds(), .kind = EventKind::Stopped});
    return events;
  } catch (const InputError&) {
    return std::nullopt;
  }
}

}  // namespace plumbline::transport::flight
