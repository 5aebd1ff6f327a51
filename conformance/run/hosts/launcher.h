// The command that starts ranks as processes: mpirun, with the options that a cluster needs. No torch.
#pragma once

#include <string>
#include <vector>

namespace plumbline::conformance {

/// Where the user names no other.
inline constexpr const char* kLauncher = "mpirun -n {np}";

/// The words of --launcher. Throws InputError unless one of them contains {np}, the place of the number of ranks.
std::vector<std::string> parse_launcher(const std::string& text);

/// The words with `ranks` in place of {np}.
std::vector<std::string> launcher_words(std::vector<std::string> launcher, int ranks);

/// The command that started this rank: the nearest ancestor's that is mpirun, mpiexec or srun, up to the word
/// `program`, as this program was called. A task of Slurm has Slurm's daemon in place of srun: then srun with the
/// options that the daemon tells (SLURM_MPI_TYPE, SLURM_STEP_NUM_NODES). On another host than mpirun's there is no such
/// ancestor: then kLauncher's words. Needs /proc.
std::vector<std::string> launcher_of_this_rank(const std::string& program, int ranks);

/// The same from the command lines of the ancestors, nearest first; `srun`: the words for a task of Slurm.
std::vector<std::string> launcher_among(const std::vector<std::vector<std::string>>& ancestors,
                                        const std::vector<std::string>& srun, const std::string& program, int ranks);

}  // namespace plumbline::conformance
