// Which ranks exchange messages, and an order in which all of them can connect to one another.
//
// Connections that are made at first use may be made in the middle of a step, by ranks that wait for one another in a
// cycle. Setting them up beforehand, round by round with every rank in one pair of a round at most, cannot: the pairs
// of a round do not touch, and a rank that is done with its pair only ever waits for one of a later round. Facts and
// order from torch.distributed.pipelining of PyTorch 2.15 (_p2p.py), which takes the links of a chain of stages; here
// the edges may skip stages and the model may have replicas.
#pragma once

#include <compare>
#include <vector>

#include "runtime/schedule/schedule.h"

namespace plumbline::schedule {

/// Two ranks that exchange messages, in one direction or both.
struct RankLink {
  int low = 0;
  int high = 0;
  auto operator<=>(const RankLink&) const = default;
};

/// One direction of a link; what a communicator of its own is for, where directions do not share one.
struct RankChannel {
  int from = 0;
  int to = 0;
  auto operator<=>(const RankChannel&) const = default;
};

/// The links that `schedule` needs for `edges`, ascending, each once however many edges, micro-batches and replicas use
/// it; an edge within a rank (the turn of a V) needs none, nor does a replica that no micro-batch goes through. Only
/// the placement counts, not the actions, so a compute schedule and its lowerings have the same links. Throws
/// InputError for a misshapen schedule (shape_problem: a stage that is on no rank or on one that does not exist, ...)
/// and for an edge that is not one (StageGraph).
std::vector<RankLink> rank_links(const Schedule& schedule, const std::vector<StageEdge>& edges);

/// Rounds of links that have no rank in common: each link in the order given goes to the first round where both of its
/// ranks are free. At most 2 d - 1 rounds, where d is the most links of one rank. Each link joins two different ranks
/// from 0 on. Takes time in the number of links times that of rounds.
std::vector<std::vector<RankLink>> link_rounds(const std::vector<RankLink>& links);

/// The same for channels: each round of link_rounds() from low to high, then from high to low. A link has both, also
/// where the schedule has no backward: what is set up for evaluation does for training.
std::vector<std::vector<RankChannel>> channel_rounds(const std::vector<RankLink>& links);

}  // namespace plumbline::schedule
