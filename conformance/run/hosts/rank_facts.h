// What `plumbline doctor` finds about the ranks of an MPI job, from the facts that each rank tells rank 0. No torch.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace plumbline::conformance {

struct RankFacts {
  std::string host;
  std::string plumbline, libtorch, mpi;  ///< versions
  std::vector<int> cores;                ///< that this process may use, ascending
  bool sees_folder = false;              ///< whether it sees a folder made in rank 0's working folder
  double clock_offset = 0;               ///< seconds by which its clock is ahead of rank 0's
  double clock_error = 0;                ///< half of the shortest round trip: the offset's uncertainty
};

std::string to_json(const RankFacts& facts);
/// Reads to_json(). Throws InputError for other text.
RankFacts read_rank_facts(const std::string& json);

/// A directed pair of ranks.
struct Link {
  int from = 0, to = 0;
  double latency = 0;    ///< seconds for 8 bytes, one way
  double bandwidth = 0;  ///< bytes per second for large messages
};

/// Each of these functions returns its finding in one line. `ranks` is indexed by rank, and not empty.
std::string hosts_found(std::span<const RankFacts> ranks);
/// Throws Error, which names the rank and its host, if the versions of two ranks differ.
std::string versions_found(std::span<const RankFacts> ranks);
std::string folder_found(std::span<const RankFacts> ranks);
std::string clocks_found(std::span<const RankFacts> ranks);
/// Says where ranks of one host share cores.
std::string cores_found(std::span<const RankFacts> ranks);
/// The slowest and the fastest link; `links` may be empty.
std::string links_found(std::span<const RankFacts> ranks, std::span<const Link> links);

}  // namespace plumbline::conformance
