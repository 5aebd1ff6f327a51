#include "runtime/transport/nccl/library.h"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>

#include "runtime/error.h"

namespace plumbline::transport::nccl {
namespace {

namespace fs = std::filesystem;

constexpr const char* kStubFile = "libplumbline_nccl_stub.so";

/// The file that PLUMBLINE_NCCL_STUB_FILE names, or one beside this program, as in a build, or where an installation
/// has it.
std::string stub_path() {
  if (const char* path = std::getenv("PLUMBLINE_NCCL_STUB_FILE")) return path;
  std::error_code ignored;
  const fs::path folder = fs::read_symlink("/proc/self/exe", ignored).parent_path();
  for (const fs::path& path : {folder / kStubFile, folder / ".." / "lib" / "plumbline" / kStubFile})
    if (fs::exists(path, ignored)) return path.lexically_normal().string();
  throw Error("--nccl stub: there is no " + std::string(kStubFile) + " in " + folder.string() +
              " or ../lib/plumbline beside it; build or install it with plumbline");
}

class Handle {
 public:
  Handle(const std::string& name, const std::string& advice) : name_(name), handle_(open(name)) {
    if (handle_ == nullptr) throw Error(std::string(dlerror()) + "; " + advice);
  }
  /// Null if the library cannot be loaded.
  static void* open(const std::string& name) { return dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL); }

  Handle(std::string name, void* handle) : name_(std::move(name)), handle_(handle) {}

  bool has(const char* symbol) const { return dlsym(handle_, symbol) != nullptr; }

  template <typename Function>
  void get(std::function<Function>& to, const char* symbol) const {
    auto* found = reinterpret_cast<Function*>(dlsym(handle_, symbol));
    if (found == nullptr)
      throw Error(name_ + " has no function " + symbol + "; take NCCL 2.28 or newer, and CUDA 12 or 13");
    to = found;
  }

  /// The file in which `symbol` was found.
  std::string path_of(const char* symbol) const {
    Dl_info info;
    void* found = dlsym(handle_, symbol);
    return found != nullptr && dladdr(found, &info) != 0 && info.dli_fname != nullptr ? info.dli_fname : name_;
  }

 private:
  std::string name_;
  void* handle_;
};

Handle cuda_runtime(const Handle& nccl) {
  if (nccl.has("cudaStreamCreateWithFlags")) return nccl;
  const std::string advice = "NCCL needs the CUDA runtime: set PLUMBLINE_CUDART to the path of libcudart.so";
  if (const char* path = std::getenv("PLUMBLINE_CUDART")) return {path, advice};
  for (const char* name : {"libcudart.so.13", "libcudart.so.12"})
    if (void* handle = Handle::open(name)) return {name, handle};
  return {"libcudart.so", advice};
}

void get_nccl(const Handle& from, Library& library) {
  from.get(library.get_version, "ncclGetVersion");
  from.get(library.get_error_string, "ncclGetErrorString");
  from.get(library.get_last_error, "ncclGetLastError");
  from.get(library.get_unique_id, "ncclGetUniqueId");
  from.get(library.comm_init_rank_config, "ncclCommInitRankConfig");
  from.get(library.comm_get_async_error, "ncclCommGetAsyncError");
  from.get(library.comm_finalize, "ncclCommFinalize");
  from.get(library.comm_destroy, "ncclCommDestroy");
  from.get(library.comm_abort, "ncclCommAbort");
  from.get(library.send, "ncclSend");
  from.get(library.recv, "ncclRecv");
}

void get_cuda(const Handle& from, Library& library) {
  from.get(library.cuda_get_error_string, "cudaGetErrorString");
  from.get(library.get_device_count, "cudaGetDeviceCount");
  from.get(library.set_device, "cudaSetDevice");
  from.get(library.stream_create_with_flags, "cudaStreamCreateWithFlags");
  from.get(library.stream_destroy, "cudaStreamDestroy");
  from.get(library.stream_wait_event, "cudaStreamWaitEvent");
  from.get(library.event_create_with_flags, "cudaEventCreateWithFlags");
  from.get(library.event_destroy, "cudaEventDestroy");
  from.get(library.event_record, "cudaEventRecord");
  from.get(library.event_query, "cudaEventQuery");
  from.get(library.host_alloc, "cudaHostAlloc");
  from.get(library.free_host, "cudaFreeHost");
  from.get(library.pointer_get_attributes, "cudaPointerGetAttributes");
}

std::string version_text(int version) {
  return std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." +
         std::to_string(version % 100);
}

}  // namespace

std::string Library::name() const {
  return stub.empty() ? "nccl " + version_text(version) : "nccl (stub: " + stub + ")";
}

Library load_library(const LibraryChoice& choice) {
  const bool stub = choice.library == "stub";
  const Handle nccl(
      stub ? stub_path() : choice.library,
      "--transport nccl needs NCCL 2.28 or newer: --nccl names its path, or `--nccl stub` takes the stub");
  Library library;
  get_nccl(nccl, library);
  library.path = nccl.path_of("ncclGetVersion");
  if (const Result result = library.get_version(&library.version); result != Result::Success)
    throw Error(library.path + ": ncclGetVersion: " + library.get_error_string(result));
  if (library.version < kLeastVersion)
    throw Error(library.path + " is NCCL " + version_text(library.version) + "; --transport nccl needs 2.28 or newer");
  const Handle cuda = cuda_runtime(nccl);
  get_cuda(cuda, library);
  library.cuda_path = cuda.path_of("cudaStreamCreateWithFlags");
  // However it was named: a report must say that it was the stub.
  if (nccl.has("plumblineNcclStubModes")) {
    std::function<const char*(const char*)> set_modes;
    nccl.get(set_modes, "plumblineNcclStubModes");
    library.stub = set_modes(stub ? choice.modes.c_str() : nullptr);
  }
  return library;
}

}  // namespace plumbline::transport::nccl
