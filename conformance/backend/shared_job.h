// A job on the ranks of an MPI job, which may be on several hosts: only rank 0's host needs the job file, the user's
// files of cases and schedules, and the folder of the results.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "conformance/protocol/job.h"
#include "runtime/transport/transport.h"

namespace plumbline::conformance {

/// Returns rank 0's job on every rank; `job` of the other ranks is ignored. Rank 0 may be judging results before it
/// calls this, so that the others need a patient deadline.
Job share_job(transport::Transport& transport, const Job& job, const transport::Deadline& deadline);

/// Adds the cases that rank 0 has added from `folder` to the corpus of the other ranks, which need no such folder.
/// Nothing if it is empty on rank 0. Throws InputError on rank 0 for files that cannot be read.
void share_cases(transport::Transport& transport, const std::filesystem::path& folder,
                 const transport::Deadline& deadline);

/// Writes the bytes of every rank to rank 0's file system, each to `path_of(rank)`, and creates the folders. All ranks
/// call it; rank 0 returns when every rank has delivered its bytes, or throws TimeoutError, which names the rank that
/// has not. Throws InputError and Error on rank 0 as write_file() does.
void write_of_all_ranks(transport::Transport& transport, const std::string& bytes,
                        const std::function<std::filesystem::path(int rank)>& path_of,
                        const transport::Deadline& deadline);

}  // namespace plumbline::conformance
