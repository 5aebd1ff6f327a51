// What the ranks of one run delivered, put together. No torch.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "conformance/protocol/job.h"
#include "runtime/tensor_file.h"

namespace plumbline::conformance {

struct RankResults {
  std::string from;  ///< who delivered them, for messages: "rank 2", or a file
  TensorMap results;
};

/// One map of what all ranks delivered. Throws Error, naming who, where two disagree on a result or one lacks a
/// gradient that another has, of a parameter that both have: copies of a shared parameter must be equal. InputError for
/// a name that is no result key.
TensorMap merge_results(const std::vector<RankResults>& ranks);

/// Of result_files(), all. Throws Error, naming the first that no rank of a job of so many ranks can have written.
std::vector<std::filesystem::path> result_files_of_ranks(const std::filesystem::path& out, const JobCase& c, int ranks);

/// The same from the files that the ranks wrote. Throws Error, in one line that names the file, also where it is
/// missing or is not one well-formed safetensors file.
TensorMap merge_rank_files(const std::vector<std::filesystem::path>& files);

}  // namespace plumbline::conformance
