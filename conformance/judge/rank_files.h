// Merges the results of all ranks of one run. No torch.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "conformance/protocol/job.h"
#include "runtime/io/tensor_file.h"

namespace plumbline::conformance {

struct RankResults {
  std::string from;   ///< the source of the results, for messages: "rank 2"
  TensorMap results;  ///< by result key
  int rank = 0;       ///< merging reads it only if there are replicas
};

/// The data-parallel replicas of a job: `count` times `ranks` consecutive ranks.
struct Replicas {
  int count = 1;
  int ranks = 1;
};

/// A result that another copy contradicts: at least one of the two is wrong.
struct Contested {
  std::optional<HostTensor> other = {};  ///< the other copy; nullopt: it is missing
  std::string kept_from = {};            ///< the source of the copy in Merged::results
  std::string other_from = {};           ///< the source of the other one
  std::string why = {};                  ///< one line: the sources, and the key
};

struct Merged {
  TensorMap results;                           ///< by result key, each of the first rank that has it
  std::map<std::string, Contested> contested;  ///< by result key
};

/// Merges tensors of any names, which need not be result keys. One is contested if two ranks deliver different tensors
/// under its name.
Merged merge_named(const std::vector<RankResults>& ranks);

/// Returns the results. Throws Error, which says why, if one of them is contested.
TensorMap uncontested(Merged merged);

/// Merges the results of all ranks. A result is contested if two ranks deliver different tensors under its key, if a
/// rank delivers a parameter but lacks a gradient of it that another rank delivers (each holder of a shared parameter
/// must deliver its gradients), or if a replica lacks a gradient, norm, parameter or optimizer state that another one
/// delivers. Throws InputError for a name that is not a result key.
Merged merge_copies(const std::vector<RankResults>& ranks, Replicas replicas = {});

/// Returns uncontested(merge_copies()).
TensorMap merge_results(const std::vector<RankResults>& ranks, Replicas replicas = {});

/// Returns result_files(out, c). Throws Error, which names the file, if there is one of stray_result_files(), and if
/// their folder cannot be read.
std::vector<std::filesystem::path> result_files_of_ranks(const std::filesystem::path& out, const JobCase& c, int ranks);

/// Files of results up to this size, in bytes, are read whatever the case expects: it is far more than any case of the
/// corpus has, and little enough for any machine.
constexpr uint64_t kUsualResultBytes = uint64_t{1} << 28;

/// Reads the files of ranks, which are in `folder` or below; their sources are "rank 0" and so on. Throws Error, in one
/// line that names the file, if a file is missing, is larger than `most_bytes`, is no regular file, is reached through
/// a link below `folder`, is not well-formed safetensors, or has a name that is not a result key.
std::vector<RankResults> read_rank_files(const std::filesystem::path& folder,
                                         const std::vector<std::filesystem::path>& files,
                                         uint64_t most_bytes = kUsualResultBytes);

}  // namespace plumbline::conformance
