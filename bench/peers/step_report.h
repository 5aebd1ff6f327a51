// Formats the comparison of pipeline steps as a table with a note on what each arm includes.
#pragma once

#include <array>
#include <string>
#include <vector>

namespace plumbline::bench {

/// PyTorch over gloo, and plumbline over MPI's two ways between processes of a host.
enum class Arm { PyTorch, Tcp, SharedMemory };
inline constexpr std::array kArms = {Arm::PyTorch, Arm::Tcp, Arm::SharedMemory};

/// The steps of one schedule.
struct ScheduleSteps {
  std::string schedule;
  std::array<std::vector<std::vector<double>>, kArms.size()> seconds = {};  ///< [arm][round][step], of the slowest rank
  std::string wrong = {};  ///< why its times are not shown: an arm and what is wrong with its gradients; empty: nothing
  bool bits_equal = true;  ///< whether all arms had the same bits in every round

  /// By round: the median step of PyTorch over that of `arm`.
  std::vector<double> over(Arm arm) const;
};

/// All steps of an arm.
std::vector<double> all_steps(const ScheduleSteps& steps, Arm arm);

/// A table with one row per schedule: the median and the 95th percentile of each arm's steps in milliseconds, and how
/// many times as long PyTorch's take: the median over the rounds, and their least and greatest.
std::string to_table(const std::vector<ScheduleSteps>& schedules);

/// What is the same in all arms, and what is not.
std::string fairness_note(int ranks, int threads, int microbatches, const std::string& torch, const std::string& mpi);

}  // namespace plumbline::bench
