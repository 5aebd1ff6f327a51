// plumbline bench peers cut: the minimum cut of a joint graph by plumbline and by networkx.
#include <cstdio>
#include <nlohmann/json.hpp>

#include "bench/cli/commands.h"
#include "bench/cli/peer_options.h"
#include "bench/peers/cut_network.h"
#include "bench/peers/side.h"
#include "runtime/error.h"
#include "runtime/io/temporary_folder.h"
#include "runtime/io/tensor_file.h"
#include "runtime/io/write_file.h"

namespace plumbline::bench {
namespace {

struct CutOptions {
  std::string python, json;
  std::vector<std::string> graphs = {"transformer", "chain", "dag"};
  int nodes = 10'000;
  double seconds = 1;
};

CutMeasurement cut_by_networkx(const CutNetwork& network, const CutOptions& options,
                               const std::filesystem::path& folder) {
  write_file(folder / "network", to_json(network));
  conformance::ProcessOptions process;
  process.argv = python_side(options.python, "minimum_cut.py", folder);
  for (const std::string& word : {(folder / "network").string(), std::string("--seconds"),
                                  std::to_string(options.seconds), std::string("--out"), (folder / "times").string()})
    process.argv.push_back(word);
  run_side("networkx' side", process, "--python: ", "`" + options.python + " -m pip install networkx` installs it",
           folder / "times");
  return read_cut_times(read_file(folder / "times"), network.vertices);
}

int compare_with_networkx(const CutOptions& options) {
  const TemporaryFolder folder;
  conformance::end_children_on_signals();
  nlohmann::ordered_json report = nlohmann::ordered_json::array();
  bool equal = true;
  for (const std::string& graph : options.graphs) {
    const CutNetwork network = cut_network(graph, options.nodes);
    const CutMeasurement ours = cut_with_flow_network(network, options.seconds);
    const CutMeasurement theirs = cut_by_networkx(network, options, folder.path());
    const bool same = ours.value == theirs.value && ours.sink_side == theirs.sink_side;
    equal = equal && same;
    if (report.empty())
      std::printf("%-12s %8s %9s %9s %12s %14s %14s %10s  %s\n", "graph", "nodes", "vertices", "edges", "ours, ms",
                  "networkx, ms", "its build, ms", "ratio", "cuts");
    std::printf("%-12s %8d %9d %9zu %12.3f %14.1f %14.1f %10.0f  %s\n", graph.c_str(), network.nodes, network.vertices,
                network.edges.size(), 1e3 * ours.cut, 1e3 * theirs.cut, 1e3 * theirs.build, theirs.cut / ours.cut,
                same ? "equal" : "DIFFERENT");
    std::fflush(stdout);
    report.push_back({{"graph", graph},
                      {"nodes", network.nodes},
                      {"vertices", network.vertices},
                      {"edges", network.edges.size()},
                      {"seconds", ours.cut},
                      {"networkx_seconds", theirs.cut},
                      {"networkx_build_seconds", theirs.build},
                      {"ratio", theirs.cut / ours.cut},
                      {"value", ours.value},
                      {"equal", same}});
  }
  if (!options.json.empty()) write_file(options.json, report.dump(1) + "\n");
  return equal ? 0 : 1;
}

}  // namespace

void add_peers_cut(CLI::App& peers, cli::Command& chosen) {
  auto options = std::make_shared<CutOptions>();
  CLI::App* command = peers.add_subcommand(
      "cut",
      "The minimum cut of a joint graph, compared with networkx.minimum_cut, which PyTorch's partitioner (in 2.11,\n"
      "for example) calls, on the same network. Our time includes building the network, networkx' is shown apart.\n"
      "Also checks that both cut at the same place.");
  add_python(*command, options->python, "A Python with networkx");
  command->add_option("--graph", options->graphs, "transformer, chain or dag; may be repeated. Default: all three")
      ->type_name("GRAPH")
      ->allow_extra_args(false);
  command
      ->add_option("--nodes", options->nodes,
                   "Approximate nodes of each joint graph; networkx needs a minute for 100000")
      ->check(CLI::Range(10, 10'000'000))
      ->capture_default_str();
  add_seconds(*command, options->seconds, "Minimum time for which each side cuts a network");
  command->add_option("--json", options->json, "Also write the numbers to this file")->type_name("FILE");
  command->callback([options, &chosen] { chosen = [options] { return compare_with_networkx(*options); }; });
}

}  // namespace plumbline::bench
