// Merges the results of all ranks of one run. No torch.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "conformance/protocol/job.h"
#include "runtime/io/tensor_file.h"

namespace plumbline::conformance {

struct RankResults {
  std::string from;  ///< their source, for messages: "rank 2", or a file
  TensorMap results;
};

/// One map of the results of all ranks. Copies of a shared parameter must be equal: throws Error, naming the rank, if
/// two disagree on a result, or if one lacks a gradient that another has of a parameter that both have. InputError for
/// a name that is not a result key.
TensorMap merge_results(const std::vector<RankResults>& ranks);

/// result_files(out, c). Throws Error naming the first file whose rank is not below `ranks`.
std::vector<std::filesystem::path> result_files_of_ranks(const std::filesystem::path& out, const JobCase& c, int ranks);

/// merge_results() of the ranks' files. Throws Error, in one line that names the file, also if a file is missing or is
/// not well-formed safetensors.
TensorMap merge_rank_files(const std::vector<std::filesystem::path>& files);

}  // namespace plumbline::conformance
