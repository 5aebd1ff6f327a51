// An order in which all ranks that exchange messages can connect to one another.
//
// Connections made at first use may be made in the middle of a step, by ranks that wait for one another in a cycle.
// Connecting beforehand in rounds avoids that: in each round every rank is in at most one pair, and a rank that has
// connected its pair of a round only waits for pairs of later rounds. Facts and order from torch.distributed.pipelining
// of PyTorch 2.15 (_p2p.py).
#pragma once

#include <compare>
#include <vector>

namespace plumbline::schedule {

/// Two ranks that exchange messages, in one direction or both.
struct RankLink {
  int low = 0;
  int high = 0;
  auto operator<=>(const RankLink&) const = default;
};

/// One direction of a link, for a transport whose directions do not share a communicator.
struct RankChannel {
  int from = 0;
  int to = 0;
  auto operator<=>(const RankChannel&) const = default;
};

/// Rounds of links that share no rank: each link, in the given order, goes to the first round in which both of its
/// ranks are free. At most 2 d - 1 rounds, where d is the most links of one rank. Aborts unless each link joins two
/// different ranks, both at least 0. Takes time linear in the number of links times the number of rounds.
std::vector<std::vector<RankLink>> link_rounds(const std::vector<RankLink>& links);

/// The same for channels: each round of link_rounds() from low to high, then from high to low. Every link gets both
/// directions, even if the schedule has no backward, so that a set-up for evaluation also serves training.
std::vector<std::vector<RankChannel>> channel_rounds(const std::vector<RankLink>& links);

}  // namespace plumbline::schedule
