#include "runtime/transport/nccl/library.h"

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

void get_nccl(const cuda::SharedLibrary& from, Library& library) {
  const auto get = [&](auto& to, const char* symbol) { from.get(to, symbol, "take NCCL 2.28 or newer"); };
  get(library.get_version, "ncclGetVersion");
  get(library.get_error_string, "ncclGetErrorString");
  get(library.get_last_error, "ncclGetLastError");
  get(library.get_unique_id, "ncclGetUniqueId");
  get(library.comm_init_rank_config, "ncclCommInitRankConfig");
  get(library.comm_get_async_error, "ncclCommGetAsyncError");
  get(library.comm_finalize, "ncclCommFinalize");
  get(library.comm_destroy, "ncclCommDestroy");
  get(library.comm_abort, "ncclCommAbort");
  get(library.send, "ncclSend");
  get(library.recv, "ncclRecv");
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
  const cuda::SharedLibrary nccl(
      stub ? stub_path() : choice.library,
      "--transport nccl needs NCCL 2.28 or newer: --nccl names its path, or `--nccl stub` takes the stub");
  Library library;
  get_nccl(nccl, library);
  library.path = nccl.path_of("ncclGetVersion");
  if (const Result result = library.get_version(&library.version); result != Result::Success)
    throw Error(library.path + ": ncclGetVersion: " + library.get_error_string(result));
  if (library.version < kMinVersion)
    throw Error(library.path + " is NCCL " + version_text(library.version) + "; --transport nccl needs 2.28 or newer");
  static_cast<cuda::Library&>(library) =
      nccl.has("cudaStreamCreateWithFlags") ? cuda::library_from(nccl) : cuda::load_library("NCCL");
  // However it was named: a report must say that it was the stub.
  if (nccl.has("plumblineNcclStubModes")) {
    std::function<const char*(const char*)> set_modes;
    nccl.get(set_modes, "plumblineNcclStubModes", "take plumbline's own stub");
    library.stub = set_modes(stub ? choice.modes.c_str() : nullptr);
  }
  return library;
}

}  // namespace plumbline::transport::nccl
