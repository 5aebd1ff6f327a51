#include "runtime/schedule/lowering/rank_links.h"

#include <algorithm>
#include <string>

#include "runtime/error.h"

namespace plumbline::schedule {

std::vector<std::vector<RankLink>> link_rounds(const std::vector<RankLink>& links) {
  int ranks = 0;
  for (const RankLink& link : links) {
    PLUMBLINE_CHECK(link.low >= 0 && link.high >= 0 && link.low != link.high,
                    std::to_string(link.low) + " and " + std::to_string(link.high) + " cannot be linked");
    ranks = std::max({ranks, link.low + 1, link.high + 1});
  }
  std::vector<std::vector<RankLink>> rounds;
  std::vector<std::vector<bool>> busy(ranks);  // by rank and round, grown on demand
  const auto is_busy = [&](int rank, std::size_t round) { return round < busy[rank].size() && busy[rank][round]; };
  const auto occupy = [&](int rank, std::size_t round) {
    busy[rank].resize(std::max(busy[rank].size(), round + 1));
    busy[rank][round] = true;
  };
  for (const RankLink& link : links) {
    std::size_t round = 0;
    while (is_busy(link.low, round) || is_busy(link.high, round)) ++round;
    if (round == rounds.size()) rounds.emplace_back();
    rounds[round].push_back(link);
    occupy(link.low, round);
    occupy(link.high, round);
  }
  return rounds;
}

std::vector<std::vector<RankChannel>> channel_rounds(const std::vector<RankLink>& links) {
  std::vector<std::vector<RankChannel>> result;
  for (const std::vector<RankLink>& round : link_rounds(links)) {
    std::vector<RankChannel> up, down;
    for (const RankLink& link : round) {
      up.push_back({link.low, link.high});
      down.push_back({link.high, link.low});
    }
    result.push_back(std::move(up));
    result.push_back(std::move(down));
  }
  return result;
}

}  // namespace plumbline::schedule
