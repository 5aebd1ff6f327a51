#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <exception>
#include <mutex>
#include <stop_token>
#include <thread>

#include "runtime/error.h"
#include "runtime/transport/mpi/mpi.h"
#include "runtime/transport/mpi/mpi_common.h"

namespace plumbline::transport {

std::string mpi_error_text(int code) {
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  if (MPI_Error_string(code, text, &length) != MPI_SUCCESS) return "MPI error " + std::to_string(code);
  return std::string(text, length);
}

void check_mpi(int code, const char* call) {
  if (code != MPI_SUCCESS) throw Error(std::string(call) + ": " + mpi_error_text(code));
}

void sleep_precisely() { prctl(PR_SET_TIMERSLACK, 1); }

bool MpiPause::next() {
  constexpr int kPolls = 20;
  if (polls_ < kPolls) {
    if (++polls_ == kPolls && polling_ > Clock::duration::zero()) start_ = Clock::now();
    return false;
  }
  if (polling_ > Clock::duration::zero()) {
    if (Clock::now() - start_ < polling_) return false;
    polling_ = {};
  }
  const timespec duration{0, sleep_ns_};
  clock_nanosleep(CLOCK_MONOTONIC, 0, &duration, nullptr);
  sleep_ns_ = std::min(sleep_ns_ + 5'000, 50'000L);
  return true;
}

namespace {

/// How long a rank waits for the others to leave MPI; each has agreed to before.
constexpr std::chrono::seconds kLeave{60};

std::string not_left() {
  return "another rank has not left MPI within " + std::to_string(kLeave.count()) + " s; it is stopped or lost";
}

void say(int rank, const std::string& reason) noexcept {
  const std::string who = "rank " + std::to_string(rank);
  const bool says_who = reason.starts_with(who + ":") || reason.starts_with(who + ",");
  const std::string line = "plumbline: " + (says_who ? reason : who + ": " + reason) + "\n";
  std::fflush(nullptr);
  // One write, so that lines of several ranks do not mix. A failed write is ignored: no other channel is left.
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace

void abort_mpi_job(int rank, const std::string& reason) noexcept {
  say(rank, reason);
  MPI_Abort(MPI_COMM_WORLD, 1);
  std::_Exit(1);
}

bool launched_under_mpi() {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK", "PMI_SIZE", "MPI_LOCALNRANKS"}) {
    if (std::getenv(name) != nullptr) return true;
  }
  return false;
}

std::string mpi_library() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  check_mpi(MPI_Get_library_version(text, &length), "MPI_Get_library_version");
  // Open MPI: "Open MPI v4.1.4, package: ...". MPICH: "MPICH Version:\t4.0.2\nMPICH Release date: ...".
  std::string name(text, length);
  name.resize(std::min(name.find_first_of(",\n"), name.size()));
  std::replace(name.begin(), name.end(), '\t', ' ');
  return name;
}

std::string mpi_host() {
  char text[MPI_MAX_PROCESSOR_NAME];
  int length = 0;
  check_mpi(MPI_Get_processor_name(text, &length), "MPI_Get_processor_name");
  return std::string(text, length);
}

MpiSession::MpiSession() : exceptions_at_start_(std::uncaught_exceptions()) {
  int initialized = 0;
  MPI_Initialized(&initialized);
  if (initialized) throw Error("MPI was initialised before in this process");
  int provided = MPI_THREAD_SINGLE;
  check_mpi(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided), "MPI_Init_thread");
  if (provided < MPI_THREAD_FUNNELED) throw Error("this MPI does not support MPI_THREAD_FUNNELED");
  MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
  MPI_Comm_size(MPI_COMM_WORLD, &size_);
  sleep_precisely();
}

MpiSession::~MpiSession() {
  if (std::uncaught_exceptions() > exceptions_at_start_) abort("left MPI by an exception");
  // MPI_Finalize waits for the others too, but may spin.
  MPI_Request request;
  MPI_Status status;
  int done = MPI_Ibarrier(MPI_COMM_WORLD, &request) != MPI_SUCCESS;
  MpiPause pause;
  const Deadline deadline = Deadline::after(kLeave);
  while (!done && MPI_Test(&request, &done, &status) == MPI_SUCCESS)
    if (pause.next() && deadline.passed()) abort(not_left());
  // MPI_Finalize has no limit, and only this thread may call MPI.
  const std::jthread watch([this](const std::stop_token& finalized) {
    std::mutex mutex;
    std::unique_lock lock(mutex);
    std::condition_variable_any condition;
    condition.wait_for(lock, finalized, kLeave, [] { return false; });
    if (finalized.stop_requested()) return;
    say(rank_, not_left());
    std::_Exit(1);  // the launcher ends the others
  });
  MPI_Finalize();
}

void MpiSession::abort(const std::string& reason) noexcept { abort_mpi_job(rank_, reason); }

}  // namespace plumbline::transport
