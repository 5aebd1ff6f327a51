#include "conformance/run/hosts/rank_facts.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "runtime/error.h"
#include "runtime/io/json_place.h"
#include "runtime/text/counted.h"
#include "runtime/text/join.h"
#include "runtime/text/significant.h"
#include "runtime/transport/machine/clock_offset.h"

namespace plumbline::conformance {
namespace {

/// "0-2, 5" of ascending numbers.
std::string ranges(const std::vector<int>& numbers) {
  std::vector<std::string> parts;
  for (size_t i = 0; i < numbers.size();) {
    size_t end = i;
    while (end + 1 < numbers.size() && numbers[end + 1] == numbers[end] + 1) ++end;
    parts.push_back(std::to_string(numbers[i]) + (end > i ? "-" + std::to_string(numbers[end]) : ""));
    i = end + 1;
  }
  return join(parts);
}

/// The ranks of each host, in the order of their first rank.
std::vector<std::pair<std::string, std::vector<int>>> by_host(std::span<const RankFacts> ranks) {
  std::vector<std::pair<std::string, std::vector<int>>> hosts;
  for (int rank = 0; rank < static_cast<int>(ranks.size()); ++rank) {
    const auto same = [&](const auto& host) { return host.first == ranks[rank].host; };
    auto host = std::ranges::find_if(hosts, same);
    if (host == hosts.end()) host = hosts.insert(hosts.end(), {ranks[rank].host, {}});
    host->second.push_back(rank);
  }
  return hosts;
}

std::string named(std::span<const RankFacts> ranks, int rank) {
  return "rank " + std::to_string(rank) + " (" + ranks[rank].host + ")";
}

/// "1.2 ms"
std::string time_text(double seconds) {
  const double size = std::abs(seconds);
  if (size < 1e-3) return significant(seconds * 1e6, 3) + " us";
  return size < 1 ? significant(seconds * 1e3, 3) + " ms" : significant(seconds, 3) + " s";
}

std::string link_text(std::span<const RankFacts> ranks, const Link& link) {
  return named(ranks, link.from) + " to " + named(ranks, link.to) + ": " + significant(link.bandwidth / 1e9, 3) +
         " GB/s, 8 bytes in " + time_text(link.latency);
}

}  // namespace

std::string to_json(const RankFacts& facts) {
  return nlohmann::json{{"host", facts.host},
                        {"plumbline", facts.plumbline},
                        {"libtorch", facts.libtorch},
                        {"mpi", facts.mpi},
                        {"cores", facts.cores},
                        {"sees_folder", facts.sees_folder},
                        {"clock_offset", facts.clock_offset},
                        {"clock_error", facts.clock_error}}
      .dump();
}

RankFacts read_rank_facts(const std::string& text) {
  constexpr int kMostCores = 1 << 20;
  try {
    const nlohmann::json document = parse_json(text, "a rank's answer");
    const JsonPlace root(document, "a rank's answer");
    std::vector<int> cores;
    for (const JsonPlace& core : root["cores"].items()) cores.push_back(core.small(0, kMostCores));
    return {.host = root["host"].text(),
            .plumbline = root["plumbline"].text(),
            .libtorch = root["libtorch"].text(),
            .mpi = root["mpi"].text(),
            .cores = std::move(cores),
            .sees_folder = root["sees_folder"].boolean(),
            .clock_offset = root["clock_offset"].number(),
            .clock_error = root["clock_error"].number()};
  } catch (const InputError& error) {
    throw InputError(std::string(error.what()) + "; install the same plumbline on every host");
  }
}

std::string hosts_found(std::span<const RankFacts> ranks) {
  const auto hosts = by_host(ranks);
  std::vector<std::string> parts;
  for (const auto& [host, members] : hosts) parts.push_back(host + " has " + ranges(members));
  return counted(ranks.size(), "rank") + " on " + counted(hosts.size(), "host") + ": " + join(parts, "; ");
}

std::string versions_found(std::span<const RankFacts> ranks) {
  const auto versions = [](const RankFacts& facts) {
    return "plumbline " + facts.plumbline + ", LibTorch " + facts.libtorch + ", " + facts.mpi;
  };
  for (int rank = 1; rank < static_cast<int>(ranks.size()); ++rank)
    if (versions(ranks[rank]) != versions(ranks[0]))
      throw Error(named(ranks, rank) + " has " + versions(ranks[rank]) + ", but rank 0 " + versions(ranks[0]) +
                  "; install the same on every host");
  return versions(ranks[0]);
}

std::string folder_found(std::span<const RankFacts> ranks) {
  std::vector<int> blind;
  for (int rank = 0; rank < static_cast<int>(ranks.size()); ++rank)
    if (!ranks[rank].sees_folder) blind.push_back(rank);
  if (blind.empty()) return "every rank sees rank 0's working folder";
  return "ranks " + ranges(blind) +
         " do not see rank 0's working folder; plumbline's own ranks send their results over MPI, but the ranks of a "
         "backend of yours would have to write where rank 0 reads";
}

std::string clocks_found(std::span<const RankFacts> ranks) {
  const auto difference = [](const RankFacts& rank) {
    return std::abs(transport::correction({rank.clock_offset, rank.clock_error}));
  };
  const auto worst = std::ranges::max_element(ranks, {}, difference);
  const int rank = static_cast<int>(worst - ranks.begin());
  if (difference(*worst) == 0) return "no clock differs from rank 0's by more than the error";
  return "the largest difference from rank 0's clock is " + time_text(worst->clock_offset) + " at " +
         named(ranks, rank) + ", measured to " + time_text(worst->clock_error) +
         "; timelines put all ranks on rank 0's clock";
}

std::string cores_found(std::span<const RankFacts> ranks) {
  std::vector<std::string> parts;
  for (const auto& [host, members] : by_host(ranks)) {
    std::set<int> cores;
    size_t sum = 0;
    for (const int rank : members) {
      cores.insert(ranks[rank].cores.begin(), ranks[rank].cores.end());
      sum += ranks[rank].cores.size();
    }
    const std::string of_host = counted(cores.size(), "core") + " of " + host;
    if (members.size() > cores.size())
      parts.push_back(counted(members.size(), "rank") + " share " + of_host +
                      ": their speed is not what it would be alone");
    else if (members.size() == 1)
      parts.push_back("1 rank on " + of_host);
    else
      parts.push_back(counted(members.size(), "rank") + " on " + of_host +
                      (sum == cores.size() ? ", each bound to its own" : ", not bound to cores of their own"));
  }
  return join(parts, "; ");
}

std::string links_found(std::span<const RankFacts> ranks, std::span<const Link> links) {
  if (links.empty()) return "one rank: nothing to measure";
  const auto slowest = std::ranges::min_element(links, {}, &Link::bandwidth);
  const auto fastest = std::ranges::max_element(links, {}, &Link::bandwidth);
  std::string text = "slowest: " + link_text(ranks, *slowest);
  if (slowest != fastest) text += "; fastest: " + link_text(ranks, *fastest);
  return text;
}

}  // namespace plumbline::conformance
