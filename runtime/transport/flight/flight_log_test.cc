#include "runtime/transport/flight/flight_log.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <fstream>

#include "runtime/error.h"
#include "runtime/io/temporary_folder.h"

namespace plumbline::transport::flight {
namespace {

Event numbered(int64_t number) {
  Event event{.seconds = static_cast<double>(number), .kind = EventKind::Blocked, .peer = 3, .tag = number};
  std::snprintf(event.what, sizeof event.what, "event %d", static_cast<int>(number));
  return event;
}

TEST(FlightLog, KeepsTheLastEvents) {
  const TemporaryFolder folder;
  FlightLog log(folder / "log");
  EXPECT_EQ(read_flight_log(folder / "log")->size(), 0u);
  for (int64_t i = 0; i < 10; ++i) log.add(numbered(i));
  std::vector<Event> events = read_flight_log(folder / "log").value();
  ASSERT_EQ(events.size(), 10u);
  EXPECT_EQ(events[7].tag, 7);
  EXPECT_STREQ(events[7].what, "event 7");
  const int64_t many = 3 * kFlightEvents + 5;
  for (int64_t i = 10; i < many; ++i) log.add(numbered(i));
  events = read_flight_log(folder / "log").value();
  ASSERT_EQ(events.size(), kFlightEvents - 1) << "the oldest may be half replaced";
  for (size_t i = 0; i < events.size(); ++i) ASSERT_EQ(events[i].tag, many - static_cast<int64_t>(events.size() - i));
}

TEST(FlightLog, ItsReaderFindsThatTheProcessIsStopped) {
  const TemporaryFolder folder;
  const pid_t child = fork();
  if (child == 0) {
    FlightLog log(folder / "log");
    log.add(numbered(1));
    raise(SIGSTOP);
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, WUNTRACED), child);
  std::vector<Event> events = read_flight_log(folder / "log").value();
  kill(child, SIGKILL);
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].tag, 1);
  EXPECT_EQ(events[1].kind, EventKind::Stopped);
  EXPECT_GE(events[1].seconds, 0);
  EXPECT_EQ(read_flight_log(folder / "log")->size(), 1u) << "it has ended";
}

TEST(FlightLog, OutlivesAKilledProcess) {
  const TemporaryFolder folder;
  const pid_t child = fork();
  if (child == 0) {
    FlightLog log(folder / "log");
    log.add(numbered(1));
    log.add(numbered(2));
    raise(SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  const std::vector<Event> events = read_flight_log(folder / "log").value();
  ASSERT_EQ(events.size(), 2u);
  EXPECT_STREQ(events.back().what, "event 2");
}

TEST(FlightLog, BytesThatAreNoEventAreLeftOut) {
  const TemporaryFolder folder;
  {
    FlightLog log(folder / "log");
    for (int64_t i = 0; i < 4; ++i) log.add(numbered(i));
  }
  const auto put = [&](int64_t event, size_t member, char byte) {
    std::fstream file(folder / "log", std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(32 + event * sizeof(Event) + member)).put(byte);
  };
  put(1, offsetof(Event, kind), 5);
  put(2, offsetof(Event, is_receive), 2);
  const std::vector<Event> events = read_flight_log(folder / "log").value();
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].tag, 0);
  EXPECT_EQ(events[1].tag, 3);
}

TEST(FlightLog, OtherFilesAreNoLogs) {
  const TemporaryFolder folder;
  EXPECT_FALSE(read_flight_log(folder / "none"));
  EXPECT_FALSE(read_flight_log(folder.path()));
  std::ofstream(folder / "text") << "plumb-flight/1";
  EXPECT_FALSE(read_flight_log(folder / "text"));
  {
    FlightLog log(folder / "log");
  }
  std::filesystem::create_symlink(folder / "log", folder / "link");
  EXPECT_TRUE(read_flight_log(folder / "log"));
  EXPECT_FALSE(read_flight_log(folder / "link"));
  std::fstream(folder / "log", std::ios::in | std::ios::out) << "another";
  EXPECT_FALSE(read_flight_log(folder / "log"));
  EXPECT_THROW(FlightLog(folder / "no folder" / "log"), Error);
}

}  // namespace
}  // namespace plumbline::transport::flight
