// Formats the comparison of pipeline steps as a table with a note on what each arm includes.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "bench/peers/peer_engines.h"

namespace plumbline::bench {

/// The other engine over gloo, and plumbline over MPI's two ways between processes of a host.
enum class Arm { Peer, Tcp, SharedMemory };
inline constexpr std::array kArms = {Arm::Peer, Arm::Tcp, Arm::SharedMemory};

/// Samples by arm, round and step.
using ArmSamples = std::array<std::vector<std::vector<double>>, kArms.size()>;

/// The samples of all rounds of an arm.
std::vector<double> all_of(const ArmSamples& samples, Arm arm);
/// By round: the median of the other engine over that of `arm`.
std::vector<double> peer_over(const ArmSamples& samples, Arm arm);

struct ScheduleSteps {
  std::string schedule;
  ArmSamples seconds = {};    ///< of the slowest rank
  ArmSamples processor = {};  ///< seconds of processor time of all ranks
  std::string wrong = {};     ///< why there are no numbers: an arm, and the error of its gradients; empty: none
  bool bits_equal = true;     ///< whether all arms had the same bits in every round
};

/// A table with one row per schedule, in milliseconds: the median and the 95th percentile of each arm's steps, and the
/// median of their processor time. Then the ratios of the other engine, `engine`, to each of plumbline's arms: the
/// median of the rounds, the least and the greatest.
std::string to_table(const std::vector<ScheduleSteps>& schedules, const PeerEngine& engine);

/// The conditions that all arms share, and those in which they differ. `version` is the engine's, `mpi` names the MPI.
std::string fairness_note(int ranks, int threads, int microbatches, const PeerEngine& engine,
                          const std::string& version, const std::string& mpi);

}  // namespace plumbline::bench
