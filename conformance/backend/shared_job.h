// A job on the ranks of an MPI job, which may be on several hosts: only rank 0's host needs the job file, the user's
// files of cases and schedules, and the folder of the results.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "conformance/protocol/job.h"
#include "runtime/transport/transport.h"

namespace plumbline::conformance {

/// Returns rank 0's job on every rank. With `add_corpus`, the cases of Job::corpus, which rank 0 reads, are then in the
/// corpus of every rank; without, they are there already. `job` of the other ranks is ignored. Rank 0 may be
/// judging results before it calls this, so that the others need a patient deadline. Throws InputError on rank 0 for
/// files that cannot be read.
Job share_job(transport::Transport& transport, const Job& job, bool add_corpus, const transport::Deadline& deadline);

/// Writes the bytes of every rank to rank 0's file system, each to `path_of(rank)`, and creates the folders. All ranks
/// call it; rank 0 returns when every rank has delivered its bytes, or throws TimeoutError, which names the rank that
/// has not. Throws InputError and Error on rank 0 as write_file() does.
void write_of_all_ranks(transport::Transport& transport, const std::string& bytes,
                        const std::function<std::filesystem::path(int rank)>& path_of,
                        const transport::Deadline& deadline);

}  // namespace plumbline::conformance
