#include "bench/peers/cut_network.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <random>

#include "runtime/clock.h"
#include "runtime/error.h"
#include "runtime/median.h"
#include "runtime/partition/cut/bans.h"
#include "runtime/partition/flow/max_flow.h"
#include "runtime/partition/parity/policies/policy_file.h"
#include "runtime/partition/testing/large_joint_graphs.h"

namespace plumbline::bench {
namespace {

using Json = nlohmann::json;
using Clock = std::chrono::steady_clock;
constexpr int kFewestCuts = 5;

partition::JointGraph joint_graph(const std::string& graph, int nodes) {
  if (graph == "transformer")
    return testing::transformer_joint_graph(
        {.blocks = std::max(1, nodes / 125), .batch = 8, .length = 128, .width = 64});
  if (graph == "chain") return testing::chain_joint_graph(std::max(1, nodes / 3));
  std::mt19937 random(1);
  if (graph == "dag") return testing::random_dag_joint_graph(std::max(1, nodes / 4), random);
  throw InputError("unknown graph '" + graph + "', expected one of transformer, chain, dag");
}

/// Merges parallel edges into one; the capacities of bounded edges are added.
void merge_parallel_edges(std::vector<CutNetwork::Edge>& edges) {
  using Edge = CutNetwork::Edge;
  std::ranges::sort(edges, {}, [](const Edge& edge) { return std::pair(edge.from, edge.to); });
  size_t kept = 0;
  for (const Edge& edge : edges) {
    if (kept > 0 && edges[kept - 1].from == edge.from && edges[kept - 1].to == edge.to) {
      int64_t& capacity = edges[kept - 1].capacity;
      const bool unbounded =
          capacity == partition::FlowNetwork::kUnbounded || edge.capacity == partition::FlowNetwork::kUnbounded;
      capacity = unbounded ? partition::FlowNetwork::kUnbounded : capacity + edge.capacity;
    } else {
      edges[kept++] = edge;
    }
  }
  edges.resize(kept);
}

}  // namespace

CutNetwork cut_network(const std::string& name, int nodes) {
  const partition::JointGraph graph = joint_graph(name, nodes);
  const partition::Policy policy = partition::load_policy("torch-2.15");
  const partition::JointEdges edges = partition::edges_of(graph);
  const partition::OpClasses ops = partition::classify_ops(graph, policy);
  const partition::NodeClasses classes = partition::classify_nodes(graph, edges, policy, ops, {});
  const partition::CutInput input{graph, edges, policy, ops, classes};
  const std::vector<partition::Ban> bans = partition::banned_from_recomputation(input, policy.bans, {});

  CutNetwork network{.graph = name, .nodes = static_cast<int>(graph.nodes.size()), .vertices = 2, .edges = {}};
  std::vector<int> in(graph.nodes.size(), CutNetwork::kSink);
  for (size_t i = 0; i < graph.nodes.size(); ++i)
    if (!classes.required_backward[i] || !classes.tangents_closure[i])
      in[i] = std::exchange(network.vertices, network.vertices + 2);
  for (partition::NodeIndex i = 0; i < std::ssize(graph.nodes); ++i) {
    if (in[i] == CutNetwork::kSink) continue;
    const int out = in[i] + 1;
    const double steps = std::clamp(classes.distance_to_backward[i], 1, 100);
    const auto weight =
        static_cast<int64_t>(static_cast<double>(partition::cut_bytes(graph.nodes[i])) * std::pow(1.1, steps));
    network.edges.push_back(
        {in[i], out, partition::tensor_can_be_saved(input, i) ? weight : partition::FlowNetwork::kUnbounded});
    if (bans[i] != partition::Ban::None)
      network.edges.push_back({CutNetwork::kSource, in[i], partition::FlowNetwork::kUnbounded});
    if (classes.required_backward[i])
      network.edges.push_back({out, CutNetwork::kSink, partition::FlowNetwork::kUnbounded});
    for (const partition::NodeIndex user : edges.users(i))
      network.edges.push_back({out, in[user], partition::FlowNetwork::kUnbounded});
  }
  merge_parallel_edges(network.edges);
  return network;
}

CutMeasurement cut_with_flow_network(const CutNetwork& network, double seconds) {
  CutMeasurement times;
  std::vector<double> measured;
  const Clock::time_point begin = Clock::now();
  while (measured.size() < kFewestCuts || seconds_since(begin) < seconds) {
    const Clock::time_point once = Clock::now();
    partition::FlowNetwork flow(network.vertices);
    flow.reserve(network.edges.size());
    for (const CutNetwork::Edge& edge : network.edges) flow.add_edge(edge.from, edge.to, edge.capacity);
    partition::FlowNetwork::Cut cut = flow.min_cut(CutNetwork::kSource, CutNetwork::kSink);
    measured.push_back(seconds_since(once));
    PLUMBLINE_CHECK(!cut.unbounded, network.graph);
    times.value = cut.value;
    times.sink_side = std::move(cut.sink_side);
  }
  times.cut = median(std::move(measured));
  return times;
}

std::string to_json(const CutNetwork& network) {
  Json from = Json::array(), to = Json::array(), capacity = Json::array();
  for (const CutNetwork::Edge& edge : network.edges) {
    from.push_back(edge.from);
    to.push_back(edge.to);
    capacity.push_back(edge.capacity == partition::FlowNetwork::kUnbounded ? Json() : Json(edge.capacity));
  }
  return Json{{"vertices", network.vertices}, {"from", from}, {"to", to}, {"capacity", capacity}}.dump();
}

CutMeasurement read_cut_times(const std::string& text, int vertices) {
  try {
    const Json json = Json::parse(text);
    CutMeasurement times{.build = json.at("build"), .cut = json.at("cut"), .value = json.at("value"), .sink_side = {}};
    times.sink_side.resize(static_cast<size_t>(vertices), 0);
    for (const Json& vertex : json.at("sink_side")) times.sink_side.at(vertex.get<size_t>()) = 1;
    return times;
  } catch (const std::exception& error) {
    throw Error("not valid minimum-cut times: " + std::string(error.what()));
  }
}

}  // namespace plumbline::bench
