#include "conformance/protocol/process/scratch_folder.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <fstream>
#include <functional>
#include <string>
#include <thread>

#include "conformance/protocol/process/process.h"

namespace plumbline::conformance {
namespace {

namespace fs = std::filesystem;

bool goes(const fs::path& folder) {
  for (int tries = 0; tries < 2000 && fs::exists(folder); ++tries)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  return !fs::exists(folder);
}

/// A process with a scratch folder, which calls `tell` with the path when the signal may come.
struct Owner {
  explicit Owner(const std::function<void(const ScratchFolder&, const std::function<void()>& tell)>& body) {
    std::array<int, 2> ends;
    EXPECT_EQ(pipe(ends.data()), 0);
    pid = fork();
    if (pid == 0) {
      end_children_on_signals();
      const ScratchFolder scratch;
      body(scratch, [&] {
        if (write(ends[1], scratch.path().c_str(), scratch.path().string().size()) < 0) _exit(1);
      });
      _exit(0);
    }
    std::array<char, 4096> text;
    const ssize_t count = read(ends[0], text.data(), text.size());
    EXPECT_GT(count, 0);
    folder = std::string(text.data(), static_cast<size_t>(std::max<ssize_t>(count, 0)));
    close(ends[0]), close(ends[1]);
  }
  /// How it ends when it gets the signal.
  int end_by(int signal) const {
    kill(pid, signal);
    int status = 0;
    waitpid(pid, &status, 0);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  }
  pid_t pid = -1;
  fs::path folder;
};

TEST(ScratchFolder, GoesWithItsObject) {
  fs::path path;
  {
    const ScratchFolder folder;
    path = folder.path();
    std::ofstream(folder / "file") << "x";
    EXPECT_TRUE(fs::exists(path / "file"));
  }
  EXPECT_FALSE(fs::exists(path));
  EXPECT_EQ(ScratchFolder::lifeline(), -1);
}

TEST(ScratchFolder, GoesBeforeASignalEndsItsProcess) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    const Owner owner([](const ScratchFolder& scratch, const auto& tell) {
      std::ofstream(scratch / "file") << "x";
      tell();
      for (;;) pause();
    });
    EXPECT_TRUE(fs::exists(owner.folder / "file"));
    EXPECT_EQ(owner.end_by(signal), signal);
    EXPECT_FALSE(fs::exists(owner.folder)) << signal;
  }
}

TEST(ScratchFolder, GoesAfterTheProgramsThatWriteThere) {
  for (const int signal : {SIGTERM, SIGKILL}) {
    const Owner owner([](const ScratchFolder& scratch, const auto& tell) {
      ProcessOptions writer;
      writer.argv = {"sh", "-c",
                     "trap 'sleep 0.5; mkdir -p late/er; exit' TERM; echo ready; while :; do sleep 0.01; done"};
      writer.directory = scratch.path();
      writer.on_output = [&](std::string_view, const auto&) { tell(); };
      run_process(writer);
    });
    EXPECT_EQ(owner.end_by(signal), signal);
    if (signal == SIGTERM) {
      EXPECT_FALSE(fs::exists(owner.folder));
    }
    EXPECT_TRUE(goes(owner.folder)) << signal;
    std::this_thread::sleep_for(std::chrono::seconds(1));
    EXPECT_FALSE(fs::exists(owner.folder)) << "made again";
  }
}

}  // namespace
}  // namespace plumbline::conformance
