#include "runtime/transport/nccl/stub/shared_lanes.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <new>
#include <thread>

#include "runtime/io/descriptor.h"

namespace plumbline::transport::nccl::stub {
namespace {

void initialise(SharedLanes& lanes) {
  // The file was grown from nothing, so all other members are 0.
  pthread_mutexattr_t mutex;
  pthread_mutexattr_init(&mutex);
  pthread_mutexattr_setpshared(&mutex, PTHREAD_PROCESS_SHARED);
  pthread_mutex_init(&lanes.mutex, &mutex);
  pthread_mutexattr_destroy(&mutex);
  pthread_condattr_t changed;
  pthread_condattr_init(&changed);
  pthread_condattr_setpshared(&changed, PTHREAD_PROCESS_SHARED);
  pthread_cond_init(&lanes.changed, &changed);
  pthread_condattr_destroy(&changed);
  lanes.ready.store(SharedLanes::kReady, std::memory_order_release);
}

}  // namespace

SharedLanes* attach_lanes(const std::string& name, std::string& error) {
  const int made = shm_open(name.c_str(), O_RDWR | O_CREAT | O_EXCL, 0600);
  const Descriptor file(made >= 0 || errno != EEXIST ? made : shm_open(name.c_str(), O_RDWR, 0600));
  // Not ftruncate(): without room for it, the first write would end in SIGBUS.
  if (const int failed = !file ? errno : made >= 0 ? posix_fallocate(file.get(), 0, sizeof(SharedLanes)) : 0) {
    error = "shared memory " + name + ": " + std::strerror(failed);
    if (made >= 0) shm_unlink(name.c_str());
    return nullptr;
  }
  // The other rank may have made the file and not grown it yet.
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (lseek(file.get(), 0, SEEK_END) < static_cast<off_t>(sizeof(SharedLanes))) {
    if (std::chrono::steady_clock::now() > limit) {
      error = "shared memory " + name + " was not completed by the other rank in 60 s";
      return nullptr;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  void* const memory = mmap(nullptr, sizeof(SharedLanes), PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  if (memory == MAP_FAILED) {
    error = "shared memory " + name + ": " + std::strerror(errno);
    return nullptr;
  }
  auto* const lanes = static_cast<SharedLanes*>(memory);
  if (made >= 0) initialise(*lanes);
  while (lanes->ready.load(std::memory_order_acquire) != SharedLanes::kReady)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return lanes;
}

void detach_lanes(SharedLanes* lanes) { munmap(lanes, sizeof(SharedLanes)); }

void forget_name(const std::string& name) { shm_unlink(name.c_str()); }

}  // namespace plumbline::transport::nccl::stub
