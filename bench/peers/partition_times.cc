#include "bench/peers/partition_times.h"

#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "runtime/clock.h"
#include "runtime/error.h"
#include "runtime/io/tensor_file.h"
#include "runtime/median.h"
#include "runtime/partition/budget/memory.h"
#include "runtime/partition/parity/partition_mode.h"
#include "runtime/partition/parity/policies/policy_file.h"
#include "runtime/partition/parity/recorded.h"
#include "runtime/text/significant.h"

namespace plumbline::bench {
namespace {

using Clock = std::chrono::steady_clock;
constexpr size_t kFewestSamples = 3;
constexpr double kSample = 0.01;  // seconds

/// Measures calls; copying the graph, which a call consumes, is not timed. A sample is the mean of as many calls as
/// take kSample together: a history keeps every sample, and single calls are tens of thousands. Returns the last
/// partition.
partition::Partition measure(const partition::JointGraph& graph, const partition::Policy& policy,
                             const partition::PartitionOptions& options, double least, std::vector<double>& seconds) {
  double sum = 0, of_sample = 0;
  int calls = 0;
  while (true) {
    partition::JointGraph copied = graph;
    const Clock::time_point begin = Clock::now();
    partition::Partition made = partition::partition(std::move(copied), policy, options);
    of_sample += seconds_since(begin);
    ++calls;
    if (of_sample < kSample) continue;
    seconds.push_back(of_sample / calls);
    sum += of_sample;
    of_sample = 0, calls = 0;
    if (seconds.size() >= kFewestSamples && sum >= least) return made;
  }
}

void add_plan(const partition::Partition& made, PartitionTimes& times) {
  const partition::MemoryProfile memory = partition::simulate_memory(made);
  times.saved_bytes = memory.saved_storage;
  times.peak_bytes = memory.peak;
}

std::string mebibytes(int64_t bytes) { return fixed(static_cast<double>(bytes) / (1 << 20), 2); }

}  // namespace

PartitionComparison partition_like_pytorch(const std::filesystem::path& out, double seconds) {
  const partition::JointGraphFile file = partition::read_joint_graph_file((out / "graph.json").string());
  const auto json = nlohmann::json::parse(read_file(out / "times.json"));
  const auto& [variant_name, variant] = *file.variants.begin();
  const partition::JointGraph& graph = file.graphs.at(variant.graph);
  const partition::Policy policy = partition::load_policy(partition::policy_name_of(variant));
  PartitionComparison comparison{.torch = json.at("torch"), .nodes = graph.nodes.size(), .modes = {}};
  for (const auto& [key, run] : file.runs) {
    PartitionTimes& times = comparison.modes.emplace_back(PartitionTimes{.mode = run.mode});
    if (run.error) {
      times.wrong = "PyTorch refuses: " + *run.error;
      continue;
    }
    json.at("seconds").at(run.mode).get_to(times.pytorch);
    const partition::Partition made = measure(graph, policy, partition::options_of(file, run), seconds, times.ours);
    add_plan(made, times);
    if (const std::vector<std::string> found = partition::differences(run, made); !found.empty())
      times.wrong = found.front();
  }
  PartitionTimes& fewest = comparison.modes.emplace_back(PartitionTimes{.mode = "bytes"});
  partition::PartitionOptions options = partition::parse_partition_mode("bytes");
  options.static_inputs = variant.params;
  add_plan(measure(graph, policy, options, seconds, fewest.ours), fewest);
  return comparison;
}

std::string to_table(const PartitionComparison& comparison) {
  char line[256];
  std::snprintf(line, sizeof line, "%-14s %12s %10s %8s %12s %12s  %s\n", "mode", "PyTorch, ms", "ours, ms", "ratio",
                "saved, MiB", "peak, MiB", "plan");
  std::string text = line;
  for (const PartitionTimes& times : comparison.modes) {
    if (!times.wrong.empty()) {
      std::snprintf(line, sizeof line, "%-14s ", times.mode.c_str());
      text += line + ("DIFFERENT: " + times.wrong) + "\n";
      continue;
    }
    std::string theirs = "-", ratio = "-";
    if (!times.pytorch.empty()) {
      theirs = fixed(1e3 * median(times.pytorch), 2);
      ratio = fixed(median(times.pytorch) / median(times.ours), 0);
    }
    std::snprintf(line, sizeof line, "%-14s %12s %10.3f %8s %12s %12s  %s\n", times.mode.c_str(), theirs.c_str(),
                  1e3 * median(times.ours), ratio.c_str(), mebibytes(times.saved_bytes).c_str(),
                  mebibytes(times.peak_bytes).c_str(), times.pytorch.empty() ? "ours alone" : "equal, node for node");
    text += line;
  }
  return text;
}

}  // namespace plumbline::bench
