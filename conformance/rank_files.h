// What the ranks of one run left on disk, put together. No torch.
#pragma once

#include <filesystem>
#include <vector>

#include "runtime/tensor_file.h"

namespace plumbline {

/// Adds what one rank delivered. Throws Error naming the result on which it disagrees with another (copies of a shared
/// parameter must be equal).
void merge_results(TensorMap& all, const TensorMap& part);

/// One map from the files that the ranks wrote. Throws Error, in one line that names the file: it is missing, it is not
/// one well-formed safetensors file, a name in it is no result key, or two ranks disagree on a result (copies of a
/// shared parameter must be equal).
TensorMap merge_rank_files(const std::vector<std::filesystem::path>& files);

}  // namespace plumbline
