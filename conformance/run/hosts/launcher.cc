#include "conformance/run/hosts/launcher.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "runtime/error.h"
#include "runtime/text/shell_words.h"

namespace plumbline::conformance {
namespace {

constexpr std::string_view kPlace = "{np}";

template <size_t N>
bool is_one_of(const std::array<const char*, N>& names, const std::string& word) {
  return std::ranges::find(names, std::filesystem::path(word).filename()) != names.end();
}

bool starts_ranks(const std::string& word) {
  constexpr std::array kNames = {"mpirun", "mpiexec", "mpiexec.hydra", "orterun", "prterun", "srun"};
  return is_one_of(kNames, word);
}

/// Starts the ranks of another host for mpirun, and may be a task of Slurm itself.
bool is_remote_daemon(const std::string& word) {
  constexpr std::array kNames = {"orted", "prted", "hydra_pmi_proxy"};
  return is_one_of(kNames, word);
}

/// For a task of Slurm, from the environment that its daemon gives it.
std::vector<std::string> srun_words(int ranks) {
  std::vector<std::string> words = {"srun"};
  if (const char* const mpi = std::getenv("SLURM_MPI_TYPE")) words.push_back(std::string("--mpi=") + mpi);
  if (const char* const nodes = std::getenv("SLURM_STEP_NUM_NODES")) words.insert(words.end(), {"-N", nodes});
  words.insert(words.end(), {"-n", std::to_string(ranks)});
  return words;
}

std::vector<std::string> words_of_process(int pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/cmdline", std::ios::binary);
  std::vector<std::string> words;
  for (std::string word; std::getline(file, word, '\0');) words.push_back(word);
  return words;
}

/// 0 if there is none, or it cannot be read.
int parent_of(int pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::ostringstream text;
  text << file.rdbuf();
  // "PID (NAME) STATE PARENT ...", where NAME may contain anything
  const std::string stat = text.str();
  const size_t name_end = stat.rfind(')');
  if (name_end == std::string::npos) return 0;
  std::istringstream rest(stat.substr(name_end + 1));
  std::string state;
  int parent = 0;
  rest >> state >> parent;
  return parent;
}

}  // namespace

std::vector<std::string> parse_launcher(const std::string& text) {
  std::vector<std::string> words = shell_words(text, "--launcher");
  const auto has_place = [](const std::string& word) { return word.find(kPlace) != std::string::npos; };
  if (std::ranges::none_of(words, has_place))
    throw InputError("--launcher: no {np}, the number of ranks, in '" + text + "'; expected a command such as '" +
                     kLauncher + "' or 'mpirun --hostfile hosts -n {np}'");
  return words;
}

std::vector<std::string> launcher_words(std::vector<std::string> launcher, int ranks) {
  for (std::string& word : launcher)
    for (size_t at = word.find(kPlace); at != std::string::npos; at = word.find(kPlace, at))
      word.replace(at, kPlace.size(), std::to_string(ranks));
  return launcher;
}

std::vector<std::string> launcher_among(const std::vector<std::vector<std::string>>& ancestors,
                                        const std::vector<std::string>& srun, const std::string& program, int ranks) {
  for (const std::vector<std::string>& words : ancestors) {
    if (words.empty()) continue;
    if (is_remote_daemon(words.front())) break;
    if (words.front().starts_with("slurmstepd:")) return srun;
    if (!starts_ranks(words.front())) continue;
    const auto end = std::ranges::find(words, program);
    if (end != words.end()) return {words.begin(), end};
  }
  return launcher_words(shell_words(kLauncher, "--launcher"), ranks);
}

std::vector<std::string> launcher_of_this_rank(const std::string& program, int ranks) {
  std::vector<std::vector<std::string>> ancestors;
  for (int pid = getppid(); pid > 0; pid = parent_of(pid)) ancestors.push_back(words_of_process(pid));
  return launcher_among(ancestors, srun_words(ranks), program, ranks);
}

}  // namespace plumbline::conformance
