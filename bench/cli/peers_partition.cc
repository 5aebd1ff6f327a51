// plumbline bench peers partition: a joint graph divided by plumbline's partitioner and by PyTorch's.
#include <cstdio>

#include "bench/cli/commands.h"
#include "bench/cli/peer_options.h"
#include "bench/cli/recording.h"
#include "bench/micro/filled_model.h"
#include "bench/peers/partition_times.h"
#include "bench/peers/side.h"
#include "runtime/io/temporary_folder.h"
#include "runtime/median.h"
#include "runtime/text/counted.h"

namespace plumbline::bench {
namespace {

struct PartitionPeerOptions {
  std::string python;
  std::vector<std::string> models = {"transformer:4,128,256,2", "transformer:4,128,256,8"};
  int rounds = 3;
  double seconds = 1;
  RecordingOptions recording;
};

const std::vector<std::string> kModes = {"min_cut", "aggressive", "budget=0.5"};
constexpr std::chrono::minutes kRoundTimeout{30};

/// One round: PyTorch in a fresh process, then ours.
PartitionComparison compare_once(const std::vector<std::string>& python, const std::string& model, double seconds,
                                 const std::filesystem::path& folder) {
  conformance::ProcessOptions process;
  process.argv = python;
  for (const std::string& word :
       {std::string("--seconds"), std::to_string(seconds), std::string("--out"), folder.string(), model})
    process.argv.push_back(word);
  process.argv.insert(process.argv.end(), kModes.begin(), kModes.end());
  process.environment["OMP_NUM_THREADS"] = "1";
  process.timeout = kRoundTimeout;
  run_side("PyTorch's side", process,
           "--python: ", "needs a Python with torch, such as that of scripts/peer torch 2.15.0", folder / "times.json");
  return partition_like_pytorch(folder, seconds);
}

void add_samples(const PartitionComparison& more, PartitionComparison& all) {
  for (size_t i = 0; i < all.modes.size(); ++i) {
    PartitionTimes& times = all.modes[i];
    const PartitionTimes& added = more.modes.at(i);
    times.ours.insert(times.ours.end(), added.ours.begin(), added.ours.end());
    times.pytorch.insert(times.pytorch.end(), added.pytorch.begin(), added.pytorch.end());
    if (times.wrong.empty()) times.wrong = added.wrong;
  }
}

void record(const PartitionComparison& comparison, const std::string& model, Recording& recording) {
  for (const PartitionTimes& times : comparison.modes) {
    if (!times.wrong.empty()) continue;
    const std::string name = "peers/partition/" + model + "/" + times.mode;
    recording.add(name, {.name = "ours", .unit = "s", .samples = times.ours});
    if (!times.pytorch.empty()) {
      recording.add(name, {.name = "pytorch", .unit = "s", .samples = times.pytorch});
      recording.add(name, {.name = "pytorch_over_ours",
                           .unit = "1",
                           .better = Better::Higher,
                           .samples = {median(times.pytorch) / median(times.ours)}});
    }
    const auto counted_bytes = [&](const char* figure, int64_t bytes) {
      recording.add(name,
                    {.name = figure, .unit = "B", .kind = Kind::Counted, .samples = {static_cast<double>(bytes)}});
    };
    counted_bytes("saved", times.saved_bytes);
    counted_bytes("planned_peak", times.peak_bytes);
  }
}

int compare_partitions(const PartitionPeerOptions& options) {
  for (const std::string& model : options.models) parse_model_shape(model);
  conformance::end_children_on_signals();
  Recording recording(options.recording);
  const TemporaryFolder folder;
  const std::vector<std::string> python = python_side(options.python, "partition_times.py", folder.path());
  bool equal = true;
  std::string torch;
  for (const std::string& model : options.models) {
    PartitionComparison comparison;
    for (int round = 0; round < options.rounds; ++round) {
      PartitionComparison once = compare_once(python, model, options.seconds, folder.path());
      if (round == 0)
        comparison = std::move(once);
      else
        add_samples(once, comparison);
      std::fprintf(stderr, "%s: round %d of %d, load average %s\n", model.c_str(), round + 1, options.rounds,
                   load_average().c_str());
    }
    std::printf("%s: joint graph of %zu nodes\n%s\n", model.c_str(), comparison.nodes, to_table(comparison).c_str());
    std::fflush(stdout);
    record(comparison, model, recording);
    torch = comparison.torch;
    for (const PartitionTimes& times : comparison.modes) equal = equal && times.wrong.empty();
  }
  std::printf(
      "medians of %s; in turns, one thread; the parameters are static\n"
      "PyTorch: torch %s, min_cut_rematerialization_partition with clean-up and two fx modules as results\n"
      "ours: clean-up and two lists of nodes; the same policy. Neither includes tracing the graph or copying it\n"
      "peak: of both halves in sequence, simulated; plans that are equal have the same\n",
      counted(options.rounds, "round").c_str(), torch.c_str());
  recording.write();
  return equal ? 0 : 1;
}

}  // namespace

void add_peers_partition(CLI::App& peers, cli::Command& chosen) {
  auto options = std::make_shared<PartitionPeerOptions>();
  CLI::App* command = peers.add_subcommand(
      "partition",
      "The partition of a joint graph, against PyTorch's min_cut_rematerialization_partition: time, saved bytes and\n"
      "simulated peak, in three modes and in ours with the fewest bytes. A plan that is not node for node PyTorch's\n"
      "gets no numbers, and exit code 1.");
  add_python(*command, options->python, "A Python with torch 2.11 or 2.15");
  add_models(*command, options->models, "mlp:ROWS,LENGTH,WIDTH,LAYERS or transformer:...; may be repeated");
  add_rounds(*command, options->rounds, "Number of runs of each side");
  add_seconds(*command, options->seconds, "Minimum time for which each side partitions in each mode");
  add_recording_options(*command, options->recording);
  command->callback([options, &chosen] { chosen = [options] { return compare_partitions(*options); }; });
}

}  // namespace plumbline::bench
