// A rank of the stub goes on, or fails, when the process that is the other one is killed.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "runtime/testing/refusal.h"
#include "runtime/transport/nccl/library.h"
#include "runtime/transport/nccl/stub/shared_lanes.h"

namespace plumbline::transport::nccl {
namespace {

using namespace std::chrono_literals;

/// A rank of a communicator whose rank 1 is a process of its own, which is killed.
class KilledPeer : public ::testing::Test {
 protected:
  static constexpr auto kLimit = 20s;

  KilledPeer() : library_(load_library(parse_library_choice("stub:eager"))) {
    library_.get_unique_id(&id_);
    for (Stream* stream : {&sends_, &receives_}) library_.stream_create_with_flags(stream, cuda::kStreamNonBlocking);
  }
  ~KilledPeer() override {
    for (const Stream stream : {sends_, receives_}) library_.stream_destroy(stream);
  }

  /// Both ranks meet; the other process then calls `ends`.
  void meet(const std::function<void(Communicator)>& ends) {
    peer_ = fork();
    if (peer_ == 0) {
      ends(joined(1));
      _exit(0);
    }
    communicator_ = joined(0);
  }
  void await_death() const { waitpid(peer_, nullptr, 0); }

  /// The state of the communicator; nothing if the call does not return.
  std::optional<Result> state() const {
    auto asked = std::make_shared<std::promise<Result>>();
    std::thread([asked, library = library_, communicator = communicator_] {
      Result state = Result::Success;
      library.comm_get_async_error(communicator, &state);
      asked->set_value(state);
    }).detach();
    auto answer = asked->get_future();
    return answer.wait_for(kLimit) == std::future_status::ready ? std::optional(answer.get()) : std::nullopt;
  }

  Communicator joined(int rank) {
    Communicator communicator = nullptr;
    Config config;
    config.blocking = 1;
    library_.comm_init_rank_config(&communicator, 2, id_, rank, &config);
    return communicator;
  }

  const Library library_;
  UniqueId id_;
  pid_t peer_ = 0;
  Communicator communicator_ = nullptr;
  Stream sends_ = nullptr, receives_ = nullptr;
};

TEST_F(KilledPeer, WithTheLockFailsTheCommunicator) {
  // The shared memory has a name until both ranks are there.
  std::promise<stub::SharedLanes*> mapped;
  std::thread mapping([&] {
    int file = -1;
    while ((file = shm_open(id_.internal, O_RDWR, 0600)) < 0) std::this_thread::yield();
    struct stat size = {};
    while (fstat(file, &size) == 0 && size.st_size < static_cast<off_t>(sizeof(stub::SharedLanes)))
      std::this_thread::yield();
    mapped.set_value(static_cast<stub::SharedLanes*>(
        mmap(nullptr, sizeof(stub::SharedLanes), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0)));
    close(file);
  });
  std::thread first([&] { communicator_ = joined(0); });
  stub::SharedLanes* const lanes = mapped.get_future().get();
  const Communicator other = joined(1);
  for (std::thread* thread : {&mapping, &first}) thread->join();
  peer_ = fork();
  if (peer_ == 0) _exit(pthread_mutex_lock(&lanes->mutex));
  await_death();
  ASSERT_EQ(state(), std::optional(Result::InvalidUsage));
  testing::expect_part(library_.get_last_error(communicator_), "the other rank ended in the middle of an operation");
  for (const Communicator communicator : {communicator_, other}) library_.comm_abort(communicator);
  munmap(lanes, sizeof *lanes);
}

TEST_F(KilledPeer, ThatWaitsKeepsNobodyWaiting) {
  std::vector<char> memory(8), never(8);
  meet([&](Communicator communicator) {
    Stream stream = nullptr;
    library_.stream_create_with_flags(&stream, cuda::kStreamNonBlocking);
    library_.recv(memory.data(), 8, DataType::Uint8, 0, communicator, stream);
    for (;;) pause();
  });
  const auto begin = std::chrono::steady_clock::now();
  while (std::string(library_.get_last_error(communicator_)).find("receive 0 of rank 1 from rank 0, 8 bytes, stream") ==
             std::string::npos &&
         std::chrono::steady_clock::now() < begin + kLimit)
    std::this_thread::sleep_for(1ms);
  std::this_thread::sleep_for(20ms);  // until it waits
  kill(peer_, SIGKILL);
  await_death();
  // Each of these tells the other rank of its steps, and the receive waits for one.
  library_.recv(never.data(), 8, DataType::Uint8, 1, communicator_, receives_);
  std::this_thread::sleep_for(20ms);
  for (int i = 0; i < 3; ++i) library_.send(memory.data(), 8, DataType::Uint8, 1, communicator_, sends_);
  std::this_thread::sleep_for(20ms);
  ASSERT_TRUE(state().has_value());
  library_.comm_abort(communicator_);
}

}  // namespace
}  // namespace plumbline::transport::nccl
