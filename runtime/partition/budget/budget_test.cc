#include "runtime/partition/budget/budget.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "runtime/error.h"
#include "runtime/partition/budget/frontier.h"
#include "runtime/partition/budget/memory.h"
#include "runtime/partition/parity/joint_graph_file.h"
#include "runtime/partition/parity/partition_mode.h"
#include "runtime/partition/parity/policies/policy_file.h"
#include "runtime/partition/testing/golden_files.h"
#include "runtime/partition/testing/joint_graph_builder.h"
#include "runtime/testing/refusal.h"

namespace plumbline::partition {
namespace {

using testing::JointGraphBuilder;

// --- PyTorch's cuts --------------------------------------------------------------------------------------------------

std::set<std::string> names(const JointGraph& graph, const std::vector<NodeIndex>& nodes) {
  std::set<std::string> result;
  for (NodeIndex node : nodes) result.insert(graph.nodes[node].name);
  return result;
}
std::set<std::string> names(const std::vector<std::string>& list) { return {list.begin(), list.end()}; }

// For each cut of each recorded budget: the rules, what they banned, what the knapsack gave up, and what was saved.
TEST(Budget, EveryCutOfPyTorch) {
  int runs = 0, cuts = 0;
  for (const JointGraphFile& file : golden_files()) {
    for (const auto& [key, run] : file.runs) {
      if (!run.mode.starts_with("budget=") || run.error) continue;
      const JointGraphFile::Variant& variant = file.variants.at(run.variant);
      const Policy policy = load_policy(variant.torch == "2.11.0" ? "torch-2.11" : "torch-2.15");
      PartitionOptions options = parse_partition_mode(run.mode);
      options.static_inputs = run.static_inputs;
      const Partition made = partition(file.graphs.at(variant.graph), policy, options);
      const std::string where = file.model + " " + key;
      ++runs;
      ASSERT_EQ(made.cuts.size(), run.cuts.size()) << where;
      for (size_t i = 0; i < made.cuts.size(); ++i) {
        const CutRecord& cut = made.cuts[i];
        const JointGraphFile::Cut& recorded = run.cuts[i];
        ++cuts;
        EXPECT_EQ(cut.rules, recorded.bans) << where << " cut " << i;
        EXPECT_EQ(names(made.graph, cut.dont_ban), names(recorded.dont_ban)) << where << " cut " << i;
        EXPECT_EQ(names(made.graph, cut.banned), names(recorded.banned)) << where << " cut " << i;
        EXPECT_EQ(names(made.graph, cut.saved), names(recorded.saved)) << where << " cut " << i;
      }
    }
  }
  EXPECT_GE(runs, 320);
  EXPECT_GT(cuts, 500);
}

// --- custom graphs ---------------------------------------------------------------------------------------------------

/// A graph that needs no clean-up, with the tables that partition() computes for its cuts.
struct Prepared {
  explicit Prepared(JointGraph made, const std::string& policy_name = "torch-2.15")
      : graph(std::move(made)),
        policy(load_policy(policy_name)),
        edges(edges_of(graph)),
        ops(classify_ops(graph, policy)),
        classes(classify_nodes(graph, edges, policy, ops, {})) {}
  CutInput input() const { return {graph, edges, policy, ops, classes}; }

  JointGraph graph;
  Policy policy;
  JointEdges edges;
  OpClasses ops;
  NodeClasses classes;
};

/// x, weights -> mm, then pairs of cos and mm; the backward reads the operand of each cos and of each mm. `sizes`:
/// bytes of each product.
JointGraph chain(const std::vector<int64_t>& sizes) {
  JointGraphBuilder b;
  const NodeIndex x = b.primal(4);
  std::vector<NodeIndex> weights, products;
  for (size_t i = 0; i < sizes.size(); ++i) weights.push_back(b.primal(4));
  const NodeIndex tangent = b.tangent(4);
  NodeIndex value = x;
  for (size_t i = 0; i < sizes.size(); ++i) {
    products.push_back(b.call("mm", {value, weights[i]}, sizes[i], 1000.0 * static_cast<double>(i + 1)));
    value = b.call("cos", {products.back()}, sizes[i]);
  }
  const NodeIndex loss = b.call("sum", {value}, 4);
  b.begin_backward();
  std::vector<NodeIndex> gradients(sizes.size() + 1, kNoNode);
  NodeIndex gradient = tangent;
  for (size_t i = sizes.size(); i-- > 0;) {
    gradient = b.call("mul", {gradient, b.call("sin", {products[i]}, sizes[i])}, sizes[i]);
    gradients[i + 1] = gradient;
    gradient = b.call("mm", {gradient, weights[i]}, i > 0 ? sizes[i - 1] : 4, 1000);
  }
  gradients[0] = gradient;
  return b.graph({loss}, gradients);
}

std::vector<std::string> saved_names(const Prepared& prepared, const PartitionOptions& options) {
  std::vector<CutRecord> cuts;
  std::vector<std::string> result;
  for (NodeIndex node : saved_within_budget(prepared.input(), options, cuts))
    if (prepared.graph.nodes[node].kind != JointKind::Primal) result.push_back(prepared.graph.nodes[node].name);
  return result;
}

PartitionOptions within(double budget) { return {.mode = PartitionMode::Budget, .budget = budget}; }

TEST(Budget, OutsideOfZeroToOneIsRefused) {
  const Prepared prepared(chain({400, 400}));
  for (double budget : {-0.1, 1.5, std::nan("")}) {
    EXPECT_EQ(testing::refusal([&] { saved_names(prepared, within(budget)); }),
              "partition: the budget must be between 0 and 1, not " + std::to_string(budget));
  }
}

TEST(Budget, ZeroSavesTheInputsWithoutACut) {
  const Prepared prepared(chain({400, 400}));
  std::vector<CutRecord> cuts;
  EXPECT_EQ(saved_within_budget(prepared.input(), within(0), cuts), (std::vector<NodeIndex>{0, 1, 2}));
  EXPECT_TRUE(cuts.empty());
}

// An input that is overwritten after the forward cannot be saved as it is: 2.15 makes a cut, 2.11 did not detect it.
TEST(Budget, ZeroWithAnInputThatIsWrittenAfterwards) {
  JointGraph graph = chain({400, 400});
  graph.nodes[1].epilogue_mutation = true;
  std::vector<CutRecord> cuts;
  const Prepared old(graph, "torch-2.11");
  EXPECT_EQ(saved_within_budget(old.input(), within(0), cuts), (std::vector<NodeIndex>{0, 1, 2}));
  EXPECT_TRUE(cuts.empty());
  graph.nodes[1].epilogue_mutation = false;
  graph.nodes[0].epilogue_mutation = true;
  for (NodeIndex node = 0; node < static_cast<NodeIndex>(graph.nodes.size()); ++node)
    if (graph.nodes[node].name == "mm") graph.nodes[node].recompute = CheckpointPolicy::MustSave;
  const Prepared prepared(graph);
  EXPECT_EQ(saved_names(prepared, within(0)), (std::vector<std::string>{"mm"}));
}

// The products take 400, 800 and 1200 bytes and 1000, 2000 and 3000 FLOPs.
TEST(Budget, CostsDecideWhatIsKept) {
  JointGraph graph = chain({400, 800, 1200});
  EXPECT_EQ(saved_names(Prepared(graph), within(0.6)), (std::vector<std::string>{"mm_2"}));
  for (JointNode& node : graph.nodes) node.flops = node.name == "mm_1" ? 10 : 1;
  EXPECT_EQ(saved_names(Prepared(graph), within(0.6)), (std::vector<std::string>{"mm", "mm_1"}));
}

TEST(Budget, EverySolverKeepsTheBudget) {
  const Prepared prepared(chain({400, 800, 1200, 440, 360, 2000}));
  const double all = 400 + 800 + 1200 + 440 + 360 + 2000;
  for (const std::string solver : {"exact", "greedy", "hirschberg", "knee-point", "bytes"}) {
    for (int tenths = 1; tenths < 10; ++tenths) {
      PartitionOptions options = within(tenths / 10.0);
      options.solver = parse_partition_mode("budget=0.5:" + solver).solver;
      std::vector<CutRecord> cuts;
      double bytes = 0;
      for (NodeIndex node : saved_within_budget(prepared.input(), options, cuts))
        if (prepared.graph.nodes[node].kind != JointKind::Primal)
          bytes += static_cast<double>(prepared.graph.nodes[node].out.bytes);
      EXPECT_LE(bytes, all * tenths / 10 + 1e-6) << solver << " " << tenths;
      EXPECT_EQ(cuts.size(), 4u);
    }
  }
}

TEST(Budget, ASolverOfOnesOwn) {
  const Prepared prepared(chain({400, 800, 1200}));
  PartitionOptions options = within(0.5);
  options.solver.solve = [&](const BudgetProblem& problem) {
    EXPECT_EQ(&problem.graph, &prepared.graph);
    EXPECT_EQ(names(problem.graph, problem.candidates), (std::set<std::string>{"mm", "mm_1", "mm_2"}));
    EXPECT_EQ(problem.bytes, (std::vector<int64_t>{1200, 800, 400}));
    EXPECT_EQ(problem.knapsack.values, (std::vector<double>{3000, 2000, 1000}));
    EXPECT_EQ(problem.knapsack.capacity, 0.5);
    return std::vector<int>{1};
  };
  EXPECT_EQ(saved_names(prepared, options), (std::vector<std::string>{"mm_1"}));
  options.solver.solve = [](const BudgetProblem&) { return std::vector<int>{3}; };
  EXPECT_EQ(testing::refusal([&] { saved_names(prepared, options); }),
            "knapsack: item 3 is out of range: the number of items is 3");
}

// Without candidates, 2.11 saves every input and what must be saved, 2.15 what the last cut needs.
TEST(Budget, NothingLeftToChoose) {
  JointGraph graph = chain({400, 800});
  for (JointNode& node : graph.nodes)
    if (node.op == "aten::mm" && node.mark == JointMark::IsForward) node.recompute = CheckpointPolicy::MustSave;
  std::vector<CutRecord> cuts;
  const auto saved = [&](const char* policy) {
    const Prepared prepared(graph, policy);
    return names(graph, saved_within_budget(prepared.input(), within(0.1), cuts));
  };
  EXPECT_EQ(saved("torch-2.11"), (std::set<std::string>{"primals_1", "primals_2", "primals_3", "mm", "mm_1"}));
  EXPECT_EQ(saved("torch-2.15"), (std::set<std::string>{"primals_2", "primals_3", "mm", "mm_1"}));
}

// --- frontier --------------------------------------------------------------------------------------------------------

TEST(Frontier, EachPointIsWhatItsBudgetSaves) {
  const JointGraph graph = chain({400, 800, 1200, 440});
  const Policy policy = load_policy("torch-2.15");
  const std::vector<BudgetPoint> points = budget_frontier(graph, policy, {});
  ASSERT_GT(points.size(), 4u);
  EXPECT_EQ(points.front().budget, 0);
  EXPECT_EQ(points.front().saved_storage, 0);
  EXPECT_EQ(points.front().recomputation, 1000 + 2000 + 3000 + 4000 + 3);  // all products, and the cos between them
  EXPECT_EQ(points.back().saved_storage, 400 + 800 + 1200 + 440);
  EXPECT_EQ(points.back().recomputation, 0);
  for (size_t i = 0; i < points.size(); ++i) {
    const Partition made = partition(graph, policy, within(points[i].budget));
    EXPECT_EQ(points[i].saved, made.saved) << i;
    EXPECT_EQ(points[i].peak, simulate_memory(made).peak) << i;
    if (i == 0) continue;
    // Just below its budget, the partition is that of the point before.
    const Partition less = partition(graph, policy, within(points[i].budget - 1e-3));
    EXPECT_EQ(points[i - 1].saved_storage, simulate_memory(less).saved_storage) << i;
    EXPECT_LT(points[i].recomputation, points[i - 1].recomputation) << i;
  }
}

TEST(Frontier, CallsArePricedByTheirCost) {
  JointGraph graph = chain({400, 800});
  for (JointNode& node : graph.nodes) node.flops = node.op == "aten::mm" ? 50 : 25;
  EXPECT_EQ(budget_frontier(graph, load_policy("torch-2.15"), {}).front().recomputation, 50 + 25 + 50);
}

TEST(Frontier, TextAndPicture) {
  const std::vector<BudgetPoint> points{
      {.budget = 0, .saved_bytes = 8, .saved_storage = 0, .peak = 900, .recomputation = 3e9},
      {.budget = 0.5, .saved_bytes = 408, .saved_storage = 400, .peak = 800, .recomputation = 0}};
  EXPECT_EQ(frontier_text(points),
            "  budget      saved bytes      new storage             peak    recomputation\n"
            "  0.0000                8                0              900            3e+09\n"
            "  0.5000              408              400              800                0\n");
  const std::string svg = frontier_svg(points);
  EXPECT_TRUE(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
  EXPECT_NE(svg.find("d=\"M90.0 30.0L610.0 340.0\""), std::string::npos) << svg;
}

}  // namespace
}  // namespace plumbline::partition
