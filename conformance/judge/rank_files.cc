#include "conformance/judge/rank_files.h"

#include <algorithm>
#include <map>
#include <set>

#include "conformance/protocol/report_folder.h"
#include "reference/result_key.h"
#include "runtime/error.h"

namespace plumbline::conformance {
namespace {

/// A rank that delivers a parameter's value has a copy of it, and must deliver every gradient that another copy has.
/// Without this check, the other copies would hide a gradient that one copy lost.
void expect_gradients_of_all_copies(const std::vector<RankResults>& ranks, const TensorMap& merged) {
  std::map<std::string, std::vector<const RankResults*>> holders;
  for (const RankResults& rank : ranks)
    for (const auto& [key, tensor] : rank.results)
      if (const reference::ResultKey parsed = reference::parse_result_key(key);
          parsed.kind == reference::ResultKind::Param)
        holders[parsed.name].push_back(&rank);
  for (const auto& [key, tensor] : merged) {
    const reference::ResultKey parsed = reference::parse_result_key(key);
    if (parsed.kind != reference::ResultKind::Grad) continue;
    for (const RankResults* rank : holders[parsed.name])
      if (!rank->results.contains(key))
        throw Error(rank->from + ": has a copy of " + parsed.name + " but lacks " + key + ", which another rank has");
  }
}

/// A replica that lost a result would hide behind the others, which have the same.
void expect_results_of_all_replicas(const std::vector<RankResults>& ranks, const TensorMap& merged, Replicas replicas) {
  using enum reference::ResultKind;
  static const std::set<reference::ResultKind> of_each = {Grad, GradNorm, Param, OptimizerState};
  for (const auto& [key, tensor] : merged) {
    if (!of_each.contains(reference::parse_result_key(key).kind)) continue;
    for (int replica = 0; replica < replicas.count; ++replica) {
      const bool delivered = std::ranges::any_of(ranks, [&](const RankResults& rank) {
        return rank.rank / replicas.ranks == replica && rank.results.contains(key);
      });
      if (delivered) continue;
      const int first = replica * replicas.ranks, last = first + replicas.ranks - 1;
      throw Error(
          "replica " + std::to_string(replica) + " (rank" +
          (first == last ? " " + std::to_string(first) : "s " + std::to_string(first) + " to " + std::to_string(last)) +
          ") lacks " + key + ", which another replica has");
    }
  }
}

/// The number in the name of a rank's file, PREFIX12.safetensors.
int rank_of(const std::filesystem::path& file) {
  const std::string stem = file.stem().string();
  const size_t digits = stem.find_last_not_of("0123456789") + 1;
  return digits < stem.size() ? std::stoi(stem.substr(digits)) : 0;
}

}  // namespace

TensorMap merge_results(const std::vector<RankResults>& ranks, Replicas replicas) {
  TensorMap merged;
  for (const RankResults& rank : ranks)
    for (const auto& [key, tensor] : rank.results) {
      const auto [it, inserted] = merged.emplace(key, tensor);
      if (!inserted && it->second != tensor)
        throw Error(rank.from + ": ranks disagree on " + key + " (copies of one tensor must be equal)");
    }
  expect_gradients_of_all_copies(ranks, merged);
  if (replicas.count > 1) expect_results_of_all_replicas(ranks, merged, replicas);
  return merged;
}

std::vector<std::filesystem::path> result_files_of_ranks(const std::filesystem::path& out, const JobCase& c,
                                                         int ranks) {
  std::vector<std::filesystem::path> files = result_files(out, c);
  std::set<std::filesystem::path> names;
  for (int rank = 0; rank < ranks; ++rank) names.insert(result_path(out, c, rank).filename());
  for (const std::filesystem::path& file : files)
    if (!names.contains(file.filename()))
      throw Error(file.string() + ": no such rank; the job has " + std::to_string(ranks) +
                  (ranks == 1 ? " rank: 0" : " ranks: 0 to " + std::to_string(ranks - 1)));
  return files;
}

TensorMap merge_rank_files(const std::filesystem::path& folder, const std::vector<std::filesystem::path>& files,
                           Replicas replicas, uint64_t most_bytes) {
  std::vector<RankResults> ranks;
  for (const std::filesystem::path& file : files) {
    std::error_code none;
    if (std::filesystem::symlink_status(file, none).type() == std::filesystem::file_type::not_found)
      throw Error("no results in " + file.string());
    // The errors of the reader name the file.
    ranks.push_back({file.string(), read_tensors(RegularFile(folder, file.lexically_relative(folder)), most_bytes),
                     replicas.count > 1 ? rank_of(file) : 0});
    try {
      for (const auto& [key, tensor] : ranks.back().results) reference::parse_result_key(key);
    } catch (const Error& error) {
      throw Error(file.string() + ": " + error.what());
    }
  }
  return merge_results(ranks, replicas);
}

}  // namespace plumbline::conformance
