#include "runtime/transport/nccl/stub/shared_lanes.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <climits>
#include <cstdio>
#include <cstring>
#include <ctime>
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
  pthread_mutexattr_setrobust(&mutex, PTHREAD_MUTEX_ROBUST);
  pthread_mutex_init(&lanes.mutex, &mutex);
  pthread_mutexattr_destroy(&mutex);
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

void LanesLock::lock() {
  if (pthread_mutex_lock(&lanes_.mutex) != EOWNERDEAD) return;
  pthread_mutex_consistent(&lanes_.mutex);
  if (lanes_.failed) return;
  std::snprintf(lanes_.error, sizeof lanes_.error, "the other rank ended in the middle of an operation");
  lanes_.failed = true;
  notify();
}

void LanesLock::wait() {
  const uint32_t seen = lanes_.changes.load(std::memory_order_acquire);
  constexpr timespec kLongest{.tv_sec = 0, .tv_nsec = 50'000'000};
  unlock();
  syscall(SYS_futex, &lanes_.changes, FUTEX_WAIT, seen, &kLongest, nullptr, 0);
  lock();
}

void LanesLock::notify() {
  lanes_.changes.fetch_add(1, std::memory_order_release);
  syscall(SYS_futex, &lanes_.changes, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace plumbline::transport::nccl::stub
