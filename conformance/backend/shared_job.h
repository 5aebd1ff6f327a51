// Gives all ranks of an MPI run rank 0's job and cases, and gathers their results: only rank 0's host needs the files.
#pragma once

#include <filesystem>
#include <functional>
#include <span>
#include <string>

#include "conformance/corpus/corpus.h"
#include "conformance/protocol/job.h"
#include "runtime/transport/transport.h"

namespace plumbline::conformance {

/// Returns rank 0's job on every rank; `job` of the other ranks is ignored. All ranks call it together. Rank 0 may be
/// judging results before it calls this, so that the others need a patient deadline. Throws as broadcast_text() does.
Job share_job(transport::Transport& transport, const Job& job, const transport::Deadline& deadline);

/// Broadcasts rank 0's files of cases, and adds their cases to the corpus of the other ranks; rank 0 must have added
/// them itself (add_cases()). `files` of the other ranks are ignored. All ranks call it together. Throws as
/// broadcast_text() does, and on the other ranks as add_cases() does.
void share_cases(transport::Transport& transport, std::span<const CaseText> files, const transport::Deadline& deadline);

/// Gathers the bytes of every rank on rank 0, which writes them to one file per rank: `path_of(rank)`, a path below
/// `out`. Creates `out` and the folders of the files if they are missing. All ranks call it together; `out` and
/// `path_of` are used on rank 0 only. Another rank returns when its bytes are sent, rank 0 when all files are written.
///
/// Throws as gather_bytes() does: on rank 0 a TimeoutError names the rank whose bytes have not come. On rank 0 also
/// throws WriteError as create_folders() and write_file() do, and std::filesystem::filesystem_error if `out` cannot be
/// created. The other ranks do not learn of that: the caller must abort them.
void gather_to_files(transport::Transport& transport, const std::string& bytes, const std::filesystem::path& out,
                     const std::function<std::filesystem::path(int rank)>& path_of,
                     const transport::Deadline& deadline);

}  // namespace plumbline::conformance
