// Rank 0 blocks in its events while nothing reads them: the other ranks wait for it longer than for a message.
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "conformance/backend/runtime.h"
#include "runtime/io/temporary_folder.h"

namespace plumbline::conformance {
namespace {

TEST(Runtime, EventsMayTakeLongerThanAMessage) {
  Job job;
  job.ranks = 2;
  job.timeout_seconds = 1;
  job.cases = {{.id = "exact-mlp-sum", .schedule = "gpipe"}, {.id = "exact-mlp-sum", .schedule = "1f1b"}};
  const TemporaryFolder folder;
  for (const bool at_the_end : {false, true}) {
    int events = 0;
    const JobResult result = Runtime().run(job, folder.path(), [&](const JobEvent& event) {
      ++events;
      if (event.done == at_the_end) std::this_thread::sleep_for(std::chrono::milliseconds(1500));
    });
    EXPECT_TRUE(result.succeeded) << "late when a case " << (at_the_end ? "is done" : "begins");
    EXPECT_EQ(events, 4);
  }
}

}  // namespace
}  // namespace plumbline::conformance
