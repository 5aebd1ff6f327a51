#include "conformance/judge/rank_files.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "conformance/protocol/report_folder.h"
#include "reference/result_key.h"
#include "runtime/error.h"
#include "runtime/text/counted.h"

namespace plumbline::conformance {
namespace {

/// A rank that delivers a parameter's value has a copy of it, and must deliver every gradient that another copy has.
/// Without this check, the other copies would hide a gradient that one copy lost.
void contest_gradients_that_a_copy_lacks(const std::vector<RankResults>& ranks, Merged& merged) {
  std::map<std::string, std::vector<const RankResults*>> holders;
  for (const RankResults& rank : ranks)
    for (const auto& [key, tensor] : rank.results)
      if (const reference::ResultKey parsed = reference::parse_result_key(key);
          parsed.kind == reference::ResultKind::Param)
        holders[parsed.name].push_back(&rank);
  for (const auto& [key, tensor] : merged.results) {
    const reference::ResultKey parsed = reference::parse_result_key(key);
    if (parsed.kind != reference::ResultKind::Grad) continue;
    for (const RankResults* rank : holders[parsed.name])
      if (!rank->results.contains(key))
        merged.contested.try_emplace(key, Contested{.why = rank->from + " has a copy of " + parsed.name +
                                                           " but lacks " + key + ", which another rank has"});
  }
}

/// A replica that lost a result would hide behind the others, which have the same.
void contest_results_that_a_replica_lacks(const std::vector<RankResults>& ranks, Merged& merged, Replicas replicas) {
  using enum reference::ResultKind;
  static const std::set<reference::ResultKind> of_each = {Grad, GradNorm, Param, OptimizerState};
  for (const auto& [key, tensor] : merged.results) {
    if (!of_each.contains(reference::parse_result_key(key).kind)) continue;
    for (int replica = 0; replica < replicas.count; ++replica) {
      const bool delivered = std::ranges::any_of(ranks, [&](const RankResults& rank) {
        return rank.rank / replicas.ranks == replica && rank.results.contains(key);
      });
      if (delivered) continue;
      const bool has_file =
          std::ranges::any_of(ranks, [&](const RankResults& rank) { return rank.rank / replicas.ranks == replica; });
      const int first = replica * replicas.ranks, last = first + replicas.ranks - 1;
      const std::string place =
          first == last ? " " + std::to_string(first) : "s " + std::to_string(first) + " to " + std::to_string(last);
      merged.contested.try_emplace(
          key, Contested{.why = "replica " + std::to_string(replica) + " (rank" + place + ") lacks " + key +
                                ", which another replica has" + (has_file ? "" : "; each needs a file of its own")});
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

Merged merge_named(const std::vector<RankResults>& ranks) {
  Merged merged;
  std::map<std::string, std::string> sources;
  for (const RankResults& rank : ranks)
    for (const auto& [key, tensor] : rank.results) {
      const auto [kept, inserted] = merged.results.emplace(key, tensor);
      const std::string& source = sources.emplace(key, rank.from).first->second;
      if (inserted || kept->second == tensor) continue;
      const std::string why =
          source + " and " + rank.from + " disagree on " + key + " (copies of one tensor must be equal)";
      merged.contested.try_emplace(key, Contested{tensor, source, rank.from, why});
    }
  return merged;
}

TensorMap uncontested(Merged merged) {
  if (!merged.contested.empty()) throw Error(merged.contested.begin()->second.why);
  return std::move(merged.results);
}

Merged merge_copies(const std::vector<RankResults>& ranks, Replicas replicas) {
  Merged merged = merge_named(ranks);
  contest_gradients_that_a_copy_lacks(ranks, merged);
  if (replicas.count > 1) contest_results_that_a_replica_lacks(ranks, merged, replicas);
  return merged;
}

TensorMap merge_results(const std::vector<RankResults>& ranks, Replicas replicas) {
  return uncontested(merge_copies(ranks, replicas));
}

std::vector<std::filesystem::path> result_files_of_ranks(const std::filesystem::path& out, const JobCase& c,
                                                         int ranks) {
  const std::filesystem::path folder = (out / result_prefix(c)).parent_path();
  std::error_code error;
  if (std::filesystem::directory_iterator(folder, error); error == std::errc::permission_denied)
    throw Error("cannot read " + folder.string() + ": " + error.message());
  if (const auto strays = stray_result_files(out, c, ranks); !strays.empty())
    throw Error(strays.front().string() + ": no such rank; the job has " + counted(ranks, "rank") +
                (ranks == 1 ? ": 0" : ": 0 to " + std::to_string(ranks - 1)));
  return result_files(out, c);
}

std::vector<RankResults> read_rank_files(const std::filesystem::path& folder,
                                         const std::vector<std::filesystem::path>& files, uint64_t most_bytes) {
  std::vector<RankResults> ranks;
  for (const std::filesystem::path& file : files) {
    std::error_code none;
    if (std::filesystem::symlink_status(file, none).type() == std::filesystem::file_type::not_found)
      throw Error("no results in " + file.string());
    const int rank = rank_of(file);
    // The errors of the reader name the file.
    ranks.push_back({"rank " + std::to_string(rank),
                     read_tensors(RegularFile(folder, file.lexically_relative(folder)), most_bytes), rank});
    try {
      for (const auto& [key, tensor] : ranks.back().results) reference::parse_result_key(key);
    } catch (const Error& error) {
      throw Error(file.string() + ": " + error.what());
    }
  }
  return ranks;
}

}  // namespace plumbline::conformance
