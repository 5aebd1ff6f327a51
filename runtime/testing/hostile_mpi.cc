// Faults of one rank below an MPI program, by MPI's profiling interface: a library that is preloaded into the ranks,
// with HOSTILE_MPI="FAULT RANK" or "FAULT RANK MESSAGE"; MESSAGE counts from 1, and is the fourth by default.
//
//   killed-at-start, killed-sending, killed-at-the-end                      by SIGKILL
//   killed-receiving                                                        likewise, waiting after its first message
//   stopped-at-the-end                                                      when it leaves MPI
//   stopped, slow, out-of-memory                                            from that message on that it sends
//   dropped, doubled, reordered, cut, longer, wrong-tag, wrong-bytes        that message that it sends
//
// Only messages of tensors count: the tags of collectives are far above theirs.
#include <mpi.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <sstream>
#include <string>

namespace {

constexpr int kHighestTag = 1'000'000;
constexpr int kLooksForAMessage = 3;  // in vain, until the rank waits

struct Chosen {
  std::string fault;  ///< of this rank; empty: none
  int message = 4;
};

const Chosen& chosen() {
  static const Chosen all = [] {
    const char *given = std::getenv("HOSTILE_MPI"), *own = std::getenv("OMPI_COMM_WORLD_RANK");
    if (own == nullptr) own = std::getenv("PMI_RANK");
    if (own == nullptr) own = std::getenv("PMIX_RANK");
    std::istringstream words(given == nullptr ? "" : given);
    std::string rank;
    Chosen read, none;
    words >> read.fault >> rank;
    if (int message = 0; words >> message) read.message = message;
    return own != nullptr && rank == own ? read : none;
  }();
  return all;
}

bool is_fault(const char* name) { return chosen().fault == name; }

void end_with(int signal) { kill(getpid(), signal); }

bool has_no_memory = false;
bool has_messages = false;  // the rank has sent or received one

struct Message {
  const void* data;
  int count;
  MPI_Datatype type;
  int to, tag;
  MPI_Comm comm;

  size_t bytes() const {
    int size = 0;
    PMPI_Type_size(type, &size);
    return static_cast<size_t>(count) * size;
  }
  int send(MPI_Request* request) const { return PMPI_Isend(data, count, type, to, tag, comm, request); }
  void send() const {
    MPI_Request request;
    send(&request);
    PMPI_Request_free(&request);
  }
  /// Memory of its own, twice as long. It is never freed: MPI may read it until the end.
  char* copy() {
    char* memory = static_cast<char*>(std::calloc(2, bytes()));
    std::memcpy(memory, data, bytes());
    data = memory;
    return memory;
  }
};

/// The faults of the chosen message; `message` is what is sent.
void change(Message& message) {
  if (is_fault("killed-sending")) end_with(SIGKILL);
  if (is_fault("stopped")) end_with(SIGSTOP);
  has_no_memory = is_fault("out-of-memory");
  if (is_fault("dropped")) message.to = MPI_PROC_NULL;
  if (is_fault("doubled")) message.send();
  if (is_fault("cut")) message.count /= 2;
  if (is_fault("wrong-tag")) message.tag += 1000;
  if (is_fault("wrong-bytes")) message.copy()[message.bytes() - 2] ^= 0x40;
  if (is_fault("longer")) message.copy(), message.count *= 2;
}

}  // namespace

extern "C" {

/// LibTorch takes the memory of tensors from here.
int posix_memalign(void** memory, size_t alignment, size_t bytes) noexcept {
  *memory = has_no_memory ? nullptr : std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
  return *memory == nullptr ? ENOMEM : 0;
}

int MPI_Init_thread(int* argc, char*** argv, int required, int* provided) {
  if (is_fault("killed-at-start")) end_with(SIGKILL);
  return PMPI_Init_thread(argc, argv, required, provided);
}

int MPI_Finalize() {
  if (is_fault("killed-at-the-end")) end_with(SIGKILL);
  if (is_fault("stopped-at-the-end")) end_with(SIGSTOP);
  return PMPI_Finalize();
}

int MPI_Improbe(int source, int tag, MPI_Comm comm, int* found, MPI_Message* message, MPI_Status* status) {
  static int in_vain = 0;
  const int code = PMPI_Improbe(source, tag, comm, found, message, status);
  has_messages = has_messages || (*found != 0 && status->MPI_TAG < kHighestTag);
  in_vain = *found != 0 ? 0 : in_vain + 1;
  if (has_messages && in_vain >= kLooksForAMessage && is_fault("killed-receiving")) end_with(SIGKILL);
  return code;
}

int MPI_Isend(const void* data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request* request) {
  static int sent = 0;
  static Message held{};
  Message message{data, count, type, to, tag, comm};
  if (tag >= kHighestTag) return message.send(request);
  has_messages = true;
  ++sent;
  const int number = chosen().message;
  if (sent == number && is_fault("reordered")) {
    message.copy();
    held = message;
    message.to = MPI_PROC_NULL;
  } else if (sent == number) {
    change(message);
  }
  if (sent >= number && is_fault("slow")) usleep(10'000);
  const int code = message.send(request);
  if (sent == number + 1 && held.data != nullptr) held.send();
  return code;
}

}  // extern "C"
