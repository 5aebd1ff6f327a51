// plumbline bench peers: the same work by plumbline and by other libraries, side by side on this machine.
#include <ATen/Parallel.h>
#include <torch/version.h>

#include <cstdio>

#include "bench/cli/commands.h"
#include "bench/cli/peer_options.h"
#include "bench/peers/backward_report.h"
#include "bench/peers/backward_round.h"
#include "bench/peers/side.h"
#include "conformance/judge/compare.h"
#include "conformance/judge/verdict/verdict.h"
#include "runtime/error.h"
#include "runtime/io/temporary_folder.h"
#include "runtime/io/write_file.h"
#include "runtime/text/counted.h"

namespace plumbline::bench {
namespace {

struct PeersOptions {
  std::string python, json;
  std::vector<std::string> models;
  int rounds = 5, threads = 1;
  double seconds = 1;
};

struct RoundOptions {
  std::string out, gradients;
  std::vector<std::string> models;
  int threads = 1;
  double seconds = 1;
};

std::vector<ModelShape> parse(const std::vector<std::string>& texts) {
  std::vector<ModelShape> models;
  for (const std::string& text : texts) models.push_back(parse_model_shape(text));
  return models;
}

/// How often memory returns to the system and is faulted in again depends on where a process's small objects happen to
/// lie in the heap, and costs up to 6 % of a large backward. These variables of the GNU C library make both sides keep
/// their memory.
std::map<std::string, std::string> kept_memory() {
  return {{"MALLOC_MMAP_THRESHOLD_", std::to_string(32 << 20)}, {"MALLOC_TRIM_THRESHOLD_", std::to_string(1 << 30)}};
}

/// The processes of one side; see backward_round.h.
class Side {
 public:
  Side(std::string name, std::vector<std::string> program, std::vector<std::string> models)
      : name_(std::move(name)), program_(std::move(program)), models_(std::move(models)) {}

  void run(int threads, std::vector<std::string> words, const std::filesystem::path& out) const {
    conformance::ProcessOptions process;
    process.argv = program_;
    words.insert(words.end(), {"--threads", std::to_string(threads), "--out", out.string()});
    process.argv.insert(process.argv.end(), words.begin(), words.end());
    process.argv.insert(process.argv.end(), models_.begin(), models_.end());
    process.environment = kept_memory();
    process.environment["OMP_NUM_THREADS"] = std::to_string(threads);
    run_side("the " + name_ + " side", process, "--python: ", "needs a Python with torch " TORCH_VERSION, out);
  }

  TensorMap gradients(const std::string& which, const std::filesystem::path& folder) const {
    run(/*threads=*/1, {"--gradients", which}, folder / "gradients");
    return read_tensor_file(folder / "gradients");
  }

  BackwardRound round(int threads, double seconds, const std::filesystem::path& folder) const {
    run(threads, {"--seconds", std::to_string(seconds)}, folder / "times");
    return read_round(folder / "times");
  }

 private:
  std::string name_;
  std::vector<std::string> program_, models_;
};

/// Compares Python's gradients with ours at one thread, bit for bit, and prints the first that differs.
bool gradients_agree(const Side& cpp, const Side& python, const std::filesystem::path& folder) {
  const TensorMap ours = cpp.gradients("split", folder);
  bool agree = true;
  for (const std::string which : {"full", "split"}) {
    const std::vector<conformance::Difference> differences =
        conformance::compare(ours, python.gradients(which, folder), conformance::CompareMode::Bitwise);
    if (differences.empty()) continue;
    agree = false;
    std::printf("gradients at one thread: Python's %s backward: %s (and %zu more tensors)\n", which.c_str(),
                conformance::sentence(differences[0]).c_str(), differences.size() - 1);
  }
  if (agree) std::printf("gradients at one thread: C++ and Python, full and split, equal bit for bit\n");
  return agree;
}

int compare_with_python(const PeersOptions& options) {
  BackwardComparison comparison{.models = parse(options.models), .threads = options.threads, .cpp = {}, .python = {}};
  if (comparison.models.empty()) comparison.models = backward_models();
  std::vector<std::string> texts;
  for (const ModelShape& model : comparison.models) texts.push_back(to_string(model));
  const Side cpp("C++", {cli::own_path(), "peers", "backward-round"}, texts);
  const TemporaryFolder folder;
  const Side python("Python", python_side(options.python, "split_backward.py", folder.path()), texts);
  conformance::end_children_on_signals();
  if (!options.json.empty()) write_file(options.json, "");  // fails now rather than after the last round
  const bool equal = gradients_agree(cpp, python, folder.path());
  for (int round = 0; round < options.rounds; ++round) {
    std::fprintf(stderr, "round %d of %d, load average %s\n", round + 1, options.rounds, load_average().c_str());
    for (const bool ours : {round % 2 == 0, round % 2 != 0})
      (ours ? comparison.cpp : comparison.python)
          .push_back((ours ? cpp : python).round(options.threads, options.seconds, folder.path()));
  }
  std::fputs(to_table(comparison).c_str(), stdout);
  const std::string& theirs = comparison.python[0].torch;
  std::printf("%s, %s a side; torch %s, Python's %s\n", counted(options.rounds, "round").c_str(),
              counted(options.threads, "thread").c_str(), TORCH_VERSION, theirs.c_str());
  if (!options.json.empty()) write_file(options.json, to_json(comparison));
  // another version may sum in a different order
  return equal || theirs.substr(0, theirs.find('+')) != TORCH_VERSION ? 0 : 1;
}

int run_round(const RoundOptions& options) {
  at::set_num_threads(options.threads);
  const std::vector<ModelShape> models = parse(options.models);
  if (options.gradients.empty())
    write_file(options.out, to_json(measure_round(models, options.seconds)));
  else
    write_tensor_file(options.out, compute_gradients(models, options.gradients == "split"));
  return 0;
}

void add_round(CLI::App& peers, cli::Command& chosen) {
  auto options = std::make_shared<RoundOptions>();
  CLI::App* command = peers.add_subcommand("backward-round", "The C++ side of one round")->group("");
  command->add_option("--threads", options->threads)->check(CLI::Range(1, 4096));
  command->add_option("--seconds", options->seconds)->check(CLI::Range(0.0, 1e6));
  command->add_option("--gradients", options->gradients)->check(CLI::IsMember({"full", "split"}));
  command->add_option("--out", options->out)->required();
  command->add_option("models", options->models)->required();
  command->callback([options, &chosen] { chosen = [options] { return run_round(*options); }; });
}

void add_backward(CLI::App& peers, cli::Command& chosen) {
  auto options = std::make_shared<PeersOptions>();
  CLI::App* command = peers.add_subcommand(
      "backward",
      "A stage's backward, whole and in halves (input gradients, then weight gradients), against\n"
      "torch.distributed.pipelining. Each round runs a fresh process of either side, one after the other; within\n"
      "it the two ways alternate. Also checks that both sides compute the same gradients, bit for bit.");
  add_python(*command, options->python, "A Python with torch, preferably our version (" TORCH_VERSION ")");
  add_rounds(*command, options->rounds, "Number of processes per side");
  add_threads(*command, options->threads, "Threads per side, within the operators");
  add_seconds(*command, options->seconds, "Minimum time for which a round measures each model");
  add_models(*command, options->models,
             "Measure this model instead of the default five: mlp:ROWS,LENGTH,WIDTH,LAYERS or transformer:...; "
             "may be repeated");
  command->add_option("--json", options->json, "Also write the numbers, with those of each round, to this file")
      ->type_name("FILE");
  command->callback([options, &chosen] { chosen = [options] { return compare_with_python(*options); }; });
}

}  // namespace

void add_peers(CLI::App& app, cli::Command& chosen) {
  CLI::App* command = app.add_subcommand(
      "peers",
      "Compare with other libraries, side by side: step, backward, partition (with PyTorch), cut (with networkx)");
  command->require_subcommand(1);
  add_peers_step(*command, chosen);
  add_backward(*command, chosen);
  add_peers_partition(*command, chosen);
  add_peers_cut(*command, chosen);
  add_round(*command, chosen);
}

}  // namespace plumbline::bench
