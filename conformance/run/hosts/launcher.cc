#include "conformance/run/hosts/launcher.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "runtime/error.h"
#include "runtime/text/shell_words.h"

namespace plumbline::conformance {
namespace {

constexpr std::string_view kPlace = "{np}";

bool starts_ranks(const std::string& word) {
  constexpr std::array kNames = {"mpirun", "mpiexec", "mpiexec.hydra", "orterun", "prterun", "srun"};
  return std::ranges::find(kNames, std::filesystem::path(word).filename()) != kNames.end();
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
                                        const std::string& program, int ranks) {
  for (const std::vector<std::string>& words : ancestors) {
    if (words.empty() || !starts_ranks(words.front())) continue;
    const auto end = std::ranges::find(words, program);
    if (end != words.end()) return {words.begin(), end};
  }
  return launcher_words(shell_words(kLauncher, "--launcher"), ranks);
}

std::vector<std::string> launcher_of_this_rank(const std::string& program, int ranks) {
  std::vector<std::vector<std::string>> ancestors;
  for (int pid = getppid(); pid > 0; pid = parent_of(pid)) ancestors.push_back(words_of_process(pid));
  return launcher_among(ancestors, program, ranks);
}

}  // namespace plumbline::conformance
