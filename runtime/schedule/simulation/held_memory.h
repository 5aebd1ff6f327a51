// The memory that each rank holds over time during a simulation: activations, and tensors that skip stages.
//
// Activations change only with actions of their rank, so they are summed as these are reported. A skipped tensor also
// changes when it arrives, which may be reported after later actions of its rank. If skipped tensors take memory, the
// moments are kept and everything is summed at the end (as with OFFLOAD, whose memory is free later), for 8 bytes per
// action and 24 per change that is no action of its rank.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_set>
#include <vector>

#include "runtime/schedule/simulation/simulation.h"
#include "runtime/schedule/simulation/skip_traffic.h"

namespace plumbline::schedule {

class HeldMemory {
 public:
  /// `compute`, `costs` and `traffic` must outlive this object. With `curves`, finish() also fills Simulation::memory.
  HeldMemory(const Schedule& compute, const StepCosts& costs, const SkipTraffic& traffic, bool curves);

  /// Reports a rank's next unit, a group or a single action, from `begin` to `end`. Units of a rank must come in its
  /// order.
  void unit(int rank, std::span<const Action> members, double begin, double end);

  /// Reports the forward message over an edge between two ranks: made at `made`, off the link at `carried`, arrived at
  /// `there`. Only if skips take memory (SkipTraffic::holds).
  void message(const StageEdge& edge, int from_rank, int to_rank, double made, double carried, double there);

  /// Reports the end of an OFFLOAD's transfer, or the beginning of a RELOAD's; after the unit of that action.
  void on_host(int rank, const Action& action, double time);

  /// Fills Timeline::peak_live, peak_memory and memory of `simulation`. Call it once, after all units and messages.
  void finish(Simulation& simulation);

 private:
  struct Held {
    int live = 0;     // activations
    int skipped = 0;  // tensors
    double bytes = 0;
  };

  // A change (bytes above 0: held; below 0: freed) at a moment that no action of the rank represents.
  struct Change {
    double time, bytes;
    int tensors;
    int live;
  };

  void begin_one(Held& held, const Action& action) const;
  void end_one(Held& held, const Action& action) const;
  void let_go_popped(Held& held, const Action& action) const;
  void note(int rank, const Held& held, double time);
  void stash_within(int rank, const Action& action, double end);
  void sum_up(int rank);

  const Schedule& compute_;
  const StepCosts& costs_;
  const SkipTraffic& traffic_;
  const bool curves_, forward_only_, offloads_;
  const bool later_;                          // sums up at the end
  std::vector<Held> held_;                    // by rank
  std::vector<std::vector<double>> moments_;  // by rank and action: when it changes the memory; if `later_`
  std::vector<std::vector<Change>> changes_;  // by rank; if `later_`
  std::unordered_set<std::uint64_t> halved_;  // stages and micro-batches after their I; with OFFLOAD only
  std::vector<int> peak_live_;
  std::vector<double> peak_;
  std::vector<std::vector<MemoryPoint>> memory_;
};

}  // namespace plumbline::schedule
