// Library: NCCL, with the CUDA runtime that it uses, loaded at run time. One build works with any NCCL from 2.28, with
// the stub (stub/), and without either.
#pragma once

#include <functional>
#include <string>

#include "runtime/transport/cuda/library.h"
#include "runtime/transport/nccl/abi.h"
#include "runtime/transport/nccl/library_choice.h"

namespace plumbline::transport::nccl {

/// The functions are those of the library, without the prefix nccl. Tests and mutants replace single ones in a copy.
struct Library : cuda::Library {
  std::string path;  ///< of the file that holds NCCL
  int version = 0;   ///< 22809 is 2.28.9
  std::string stub;  ///< the stub's modes ("late,poison", or "eager"); empty: not the stub

  std::function<function::GetVersion> get_version;
  std::function<function::GetErrorString> get_error_string;
  std::function<function::GetLastError> get_last_error;
  std::function<function::GetUniqueId> get_unique_id;
  std::function<function::CommInitRankConfig> comm_init_rank_config;
  std::function<function::CommGetAsyncError> comm_get_async_error;
  std::function<function::CommFinalize> comm_finalize;
  std::function<function::CommDestroy> comm_destroy;
  std::function<function::CommAbort> comm_abort;
  std::function<function::Send> send;
  std::function<function::Recv> recv;

  /// "nccl 2.28.9", or "nccl (stub: late,poison)".
  std::string name() const;
};

/// Loads the chosen library and sets the stub's modes, which hold for the whole process. The CUDA runtime is that of
/// the library if it exports one, as the stub does, else that of cuda::load_library(). Throws Error, with a remedy, if
/// a library is absent, lacks a function or is older than 2.28. Libraries stay loaded.
Library load_library(const LibraryChoice& choice);

}  // namespace plumbline::transport::nccl
