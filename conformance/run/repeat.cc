#include "conformance/run/repeat.h"

#include <sstream>

#include "conformance/protocol/process/process.h"
#include "runtime/text/join.h"

namespace plumbline::conformance {
namespace {

std::string beside(const std::filesystem::path& report) {
  constexpr const char* kSuffix = "-repeat";
  const std::string folder = (report / "").lexically_normal().parent_path().string();
  return folder.ends_with(kSuffix) ? folder : folder + kSuffix;
}

}  // namespace

std::string repeat_command(const RunOptions& options, const RunId& run) {
  std::vector<std::string> words = options.started_by;
  words.insert(words.end(), {options.program, "run"});
  const auto add = [&](const char* name, const std::string& value) { words.insert(words.end(), {name, value}); };
  add("--case", run.case_id);
  add("--schedule", run.schedule);
  if (options.backend.foreign)
    add("--backend", options.backend.given);
  else if (options.started_by.empty() || run.transport != "mpi")  // processes take mpi by themselves
    add("--transport", run.transport);
  if (!options.launcher.empty()) add("--launcher", options.launcher);
  if (!options.corpus.empty()) add("--corpus", options.corpus.string());
  if (options.started_by.empty()) add("--ranks", std::to_string(run.ranks));
  add("--seed", std::to_string(options.seed));
  if (options.microbatches > 0) add("--microbatches", std::to_string(options.microbatches));
  if (!options.mutant.empty()) add("--mutant", options.mutant);
  if (options.recompute != RunOptions().recompute) add("--recompute", options.recompute);
  if (options.remat.on()) {
    add("--remat", options.remat.mode);
    add("--remat-policy", options.remat.policy);
  }
  if (!options.wire.empty()) add("--wire", options.wire);
  if (options.device != RunOptions().device) add("--device", options.device);
  if (!options.nccl.empty()) add("--nccl", options.nccl);
  if (options.timeout_seconds != RunOptions().timeout_seconds) {
    std::ostringstream seconds;
    seconds << options.timeout_seconds;
    add("--timeout", seconds.str());
  }
  if (!options.waivers.empty()) add("--waivers", options.waivers.string());
  add("--report", beside(options.report));
  for (std::string& word : words) word = shell_word(word);
  return join(words, " ");
}

}  // namespace plumbline::conformance
