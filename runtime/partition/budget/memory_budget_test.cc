// PyTorch's MemoryBudgetTest (test/functorch/test_ac.py), by name, on joint graphs written down as aten traces them.
// Units are the original's: memory newly held between forward and backward, in tensors of 512 x 512 float32 (1 MiB),
// each storage once; the backward's floating-point operations, in products of two such matrices.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "runtime/partition/budget/budget.h"
#include "runtime/partition/joint/joint_flops.h"
#include "runtime/partition/parity/policies/policy_file.h"
#include "runtime/partition/partition.h"
#include "runtime/partition/testing/joint_graph_builder.h"

namespace plumbline::partition {
namespace {

constexpr int64_t kUnit = 512;
constexpr double kUnitBytes = 4.0 * kUnit * kUnit;
constexpr double kUnitFlops = 2.0 * kUnit * kUnit * kUnit;

using Shape = std::vector<int64_t>;

int64_t bytes_of(const Shape& shape) {
  int64_t bytes = 4;
  for (int64_t size : shape) bytes *= size;
  return bytes;
}

/// A small autograd: records forward calls and the backward of each, then emits the backwards in reverse.
class Tape {
 public:
  explicit Tape(const std::vector<Shape>& inputs) {
    for (const Shape& shape : inputs) {
      inputs_.push_back(builder_.primal(bytes_of(shape)));
      shaped(inputs_.back(), shape);
    }
    tangent_ = builder_.tangent(4);
    shaped(tangent_, {});
  }

  NodeIndex input(size_t i) const { return inputs_[i]; }
  NodeIndex cos(NodeIndex x) {
    const NodeIndex y = call("cos", {x}, shape(x));
    on_backward([=, this] {
      const NodeIndex negated = call("neg", {call("sin", {x}, shape(x))}, shape(x));
      pass(x, call("mul", {gradient(y), negated}, shape(x)));
    });
    return y;
  }
  /// An operator unknown to every policy, like a user's custom kernel.
  NodeIndex own_relu(NodeIndex x) {
    const NodeIndex y = call("testac::triton_relu", {x}, shape(x));
    on_backward([=, this] { pass(x, call("testac::triton_relu_backward", {gradient(y)}, shape(x))); });
    return y;
  }
  NodeIndex t(NodeIndex x) {
    const NodeIndex y = transposed(x);
    on_backward([=, this] { pass(x, transposed(gradient(y))); });
    return y;
  }
  NodeIndex mm(NodeIndex a, NodeIndex b) {
    const NodeIndex y = product(a, b);
    on_backward([=, this] {
      const NodeIndex of_y = gradient(y);
      pass(b, product(transposed(a), of_y));
      pass(a, product(of_y, transposed(b)));
    });
    return y;
  }
  NodeIndex sum(NodeIndex x) {
    const NodeIndex y = call("sum", {x}, {});
    on_backward([=, this] { pass(x, view("expand", gradient(y), shape(x))); });
    return y;
  }
  NodeIndex add(NodeIndex a, NodeIndex b) {
    const NodeIndex y = call("add", {a, b}, shape(a));
    on_backward([=, this] {
      pass(a, gradient(y));
      pass(b, gradient(y));
    });
    return y;
  }
  NodeIndex reshape(NodeIndex x, const Shape& to) {
    const NodeIndex y = view("view", x, to);
    on_backward([=, this] { pass(x, view("view", gradient(y), shape(x))); });
    return y;
  }
  /// Scaled dot product attention of (1, 1, length, width) with itself.
  NodeIndex self_attention(NodeIndex x) {
    const std::string op = "_scaled_dot_product_efficient_attention";
    const int64_t rows = shape(x).at(2);
    const std::vector<NodeIndex> results = builder_.multi(op, {x, x, x}, {bytes_of(shape(x)), 4 * rows, 8, 8});
    shaped(results[0], shape(x));
    on_backward([=, this] {
      std::vector<NodeIndex> read{gradient(results[0]), x, x, x};
      read.insert(read.end(), results.begin(), results.end());
      const int64_t bytes = bytes_of(shape(x));
      for (NodeIndex each : builder_.multi(op + "_backward", read, {bytes, bytes, bytes})) {
        shaped(each, shape(x));
        pass(x, each);
      }
    });
    return results[0];
  }

  /// The joint graph for a scalar loss.
  JointGraph backward(NodeIndex loss) {
    builder_.begin_backward();
    gradients_[loss] = tangent_;
    while (!backward_.empty()) {
      backward_.back()();
      backward_.pop_back();
    }
    std::vector<NodeIndex> of_inputs;
    for (NodeIndex input : inputs_) of_inputs.push_back(gradient(input));
    JointGraph graph = builder_.graph({loss}, of_inputs);
    verify(graph);
    count_flops(graph);
    return graph;
  }

  JointNode& at(NodeIndex node) { return builder_.at(node); }
  int size() const { return builder_.size(); }

 private:
  Shape shape(NodeIndex node) {
    Shape sizes;
    for (const Extent& extent : at(node).out.shape) sizes.push_back(extent.value);
    return sizes;
  }
  NodeIndex shaped(NodeIndex node, const Shape& shape) {
    at(node).out.shape.clear();
    for (int64_t size : shape) at(node).out.shape.push_back({.value = size, .expression = ""});
    at(node).out.strides.assign(shape.size(), {});
    return node;
  }
  NodeIndex call(const std::string& op, const std::vector<NodeIndex>& read, const Shape& to) {
    return shaped(builder_.call(op, read, bytes_of(to)), to);
  }
  NodeIndex view(const std::string& op, NodeIndex of, const Shape& to) {
    return shaped(builder_.view(op, of, bytes_of(to)), to);
  }
  NodeIndex transposed(NodeIndex x) { return view("t", x, {shape(x).at(1), shape(x).at(0)}); }
  NodeIndex product(NodeIndex a, NodeIndex b) { return call("mm", {a, b}, {shape(a).at(0), shape(b).at(1)}); }

  template <class F>
  void on_backward(F&& f) {
    backward_.push_back(std::forward<F>(f));
  }
  NodeIndex gradient(NodeIndex node) const { return gradients_.at(node); }
  void pass(NodeIndex to, NodeIndex gradient) {
    const auto [it, first] = gradients_.emplace(to, gradient);
    if (!first) it->second = call("add", {it->second, gradient}, shape(to));
  }

  testing::JointGraphBuilder builder_;
  std::vector<NodeIndex> inputs_;
  NodeIndex tangent_;
  std::vector<std::function<void()>> backward_;
  std::map<NodeIndex, NodeIndex> gradients_;
};

struct Cost {
  double memory = 0, flops = 0;  // units

  bool operator==(const Cost&) const = default;
};

void PrintTo(const Cost& cost, std::ostream* os) { *os << cost.memory << " units, " << cost.flops << " products"; }

Cost cost_of(const Partition& partition) {
  const std::vector<JointNode>& nodes = partition.graph.nodes;
  std::set<int> held;
  for (const JointNode& node : nodes)
    if (node.kind == JointKind::Primal) held.insert(node.out.storage);
  Cost cost;
  for (NodeIndex saved : partition.saved)
    if (held.insert(nodes[saved].out.storage).second)
      cost.memory += static_cast<double>(partition.graph.storage_bytes[nodes[saved].out.storage]) / kUnitBytes;
  for (NodeIndex op : partition.backward.ops)
    if (nodes[op].flops > 1) cost.flops += nodes[op].flops / kUnitFlops;
  return cost;
}

Cost cost_of(const JointGraph& graph, PartitionOptions options) {
  return cost_of(partition(graph, load_policy("torch-2.15"), options));
}
Cost within(const JointGraph& graph, double budget) {
  return cost_of(graph, {.mode = PartitionMode::Budget, .budget = budget});
}
Cost eager(const JointGraph& graph) { return cost_of(graph, {.mode = PartitionMode::Default}); }

Shape units(int64_t rows, int64_t columns) { return {rows * kUnit, columns * kUnit}; }

TEST(MemoryBudget, rematerializes_cheap) {
  Tape tape({units(1, 1), units(1, 1)});
  const NodeIndex product = tape.mm(tape.cos(tape.input(0)), tape.input(1));
  const JointGraph graph = tape.backward(tape.sum(product));
  EXPECT_EQ(eager(graph).memory, 1);
  EXPECT_EQ(within(graph, 1), (Cost{1, eager(graph).flops}));
  EXPECT_EQ(within(graph, 0.5), (Cost{0, eager(graph).flops}));
}

/// cos, `products` times (mm, cos), sum.
JointGraph even_chain(int products) {
  Tape tape(std::vector<Shape>(products + 1, units(1, 1)));
  NodeIndex x = tape.cos(tape.input(0));
  for (int i = 1; i <= products; ++i) x = tape.cos(tape.mm(x, tape.input(i)));
  return tape.backward(tape.sum(x));
}

TEST(MemoryBudget, matmul_even_chain) {
  const JointGraph graph = even_chain(5);
  const double flops = eager(graph).flops;
  EXPECT_EQ(flops, 10);
  for (int budget = 0; budget <= 10; ++budget) {
    const Cost expected = budget <= 5   ? Cost{double(budget), flops + (5 - budget)}  // products are saved
                          : budget < 10 ? Cost{5, flops}                              // only the cos are recomputed
                                        : Cost{10, flops};
    EXPECT_EQ(within(graph, budget / 10.0), expected) << budget;
  }
}

/// sum over w of sum(cos(x @ w)), for x of one unit and w of the widths given.
JointGraph uneven(const std::vector<int>& widths) {
  std::vector<Shape> shapes{units(1, 1)};
  for (int width : widths) shapes.push_back(units(1, width));
  Tape tape(shapes);
  std::vector<NodeIndex> values;
  for (size_t i = 0; i < widths.size(); ++i) values.push_back(tape.cos(tape.mm(tape.input(0), tape.input(i + 1))));
  NodeIndex loss = tape.sum(values[0]);
  for (size_t i = 1; i < values.size(); ++i) loss = tape.add(loss, tape.sum(values[i]));
  return tape.backward(loss);
}

// Each product's cost is proportional to its size: the budget is met exactly wherever some sizes add up to it.
TEST(MemoryBudget, matmul_uneven_chain) {
  const std::vector<std::pair<std::vector<int>, std::vector<int>>> cases{
      {{11, 3, 4, 2}, {18, 17, 16, 15, 14, 13, 11, 7, 6, 5}},
      {{3, 5, 11, 17, 14}, {42, 30, 19, 8, 3}},
      // random.seed(0), ten of randint(0, 50), shuffled ten times; sums of the first 0 to 9 after each shuffle
      {{2, 32, 24, 16, 31, 25, 19, 50, 48, 26}, {0, 50, 69, 45, 112, 120, 162, 206, 223, 247}},
  };
  for (const auto& [widths, targets] : cases) {
    const JointGraph graph = uneven(widths);
    int total = 0;
    for (int width : widths) total += width;
    EXPECT_EQ(eager(graph).memory, total);
    for (int target : targets)
      EXPECT_EQ(within(graph, double(target) / total).memory, target) << target << " of " << total;
  }
}

/// sum over pairs (k, n) of sum(cos(x @ w)), x of k x k and w of k x n units: n k of memory, n k k of operations.
JointGraph pairs(const std::vector<std::pair<int, int>>& sizes) {
  std::vector<Shape> shapes;
  for (const auto& [k, n] : sizes) shapes.push_back(units(k, k));
  for (const auto& [k, n] : sizes) shapes.push_back(units(k, n));
  Tape tape(shapes);
  std::vector<NodeIndex> values;
  for (size_t i = 0; i < sizes.size(); ++i)
    values.push_back(tape.cos(tape.mm(tape.input(i), tape.input(sizes.size() + i))));
  NodeIndex loss = tape.sum(values[0]);
  for (size_t i = 1; i < values.size(); ++i) loss = tape.add(loss, tape.sum(values[i]));
  return tape.backward(loss);
}

TEST(MemoryBudget, prioritize_cheaper_matmul) {
  const JointGraph graph = pairs({{1, 4}, {2, 2}});
  EXPECT_EQ(eager(graph), (Cost{8, 24}));
  EXPECT_EQ(within(graph, 0.5), (Cost{4, 24 + 4}));
}

TEST(MemoryBudget, prioritize_cheaper_matmul2) {
  const JointGraph graph = pairs({{4, 4}, {6, 2}, {2, 6}});
  EXPECT_EQ(eager(graph), (Cost{40, 320}));
  EXPECT_EQ(within(graph, 28.0 / 40), (Cost{28, 320 + 2 * 2 * 6}));
  EXPECT_EQ(within(graph, 16.0 / 40), (Cost{12, 320 + 2 * 2 * 6 + 4 * 4 * 4}));
}

// Attention costs more than the product if 2 S > D in units; the cheaper of the two is recomputed.
TEST(MemoryBudget, attention_vs_linear) {
  struct Case {
    int length, width;
    bool attention_again;
  };
  for (const auto& [length, width, attention_again] :
       {Case{1, 1, false}, {1, 3, true}, {2, 2, false}, {2, 1, false}, {2, 5, true}, {4, 7, false}, {4, 9, true}}) {
    Tape tape({units(length, width), units(width, width)});
    const Shape shape = units(length, width);
    const NodeIndex attended = tape.self_attention(tape.reshape(tape.input(0), {1, 1, shape[0], shape[1]}));
    const NodeIndex product = tape.mm(tape.reshape(attended, shape), tape.input(1));
    const JointGraph graph = tape.backward(tape.sum(tape.cos(product)));
    // Beside the two large values, attention saves a number per row and its seeds; PyTorch's test rounds to tenths.
    const double rows = (4.0 * length * kUnit + 16) / kUnitBytes;
    const Cost all = eager(graph), some = within(graph, 0.6);
    const double of_attention = 2.0 * length * length * width, of_product = length * width * width;
    EXPECT_NEAR(all.memory, 2 * length * width, rows) << length << " " << width;
    EXPECT_NEAR(some.memory, length * width, rows) << length << " " << width;
    EXPECT_EQ(some.flops - all.flops, attention_again ? of_attention : of_product) << length << " " << width;
  }
}

// An unknown operator is not recomputed unless the budget requires it; every budget yields a partition that runs.
TEST(MemoryBudget, custom_triton_kernel) {
  Tape tape(std::vector<Shape>(6, units(1, 1)));
  NodeIndex x = tape.own_relu(tape.input(0));
  for (int i = 1; i <= 5; ++i) x = tape.own_relu(tape.mm(x, tape.input(i)));
  const JointGraph graph = tape.backward(tape.sum(x));
  for (int budget = 0; budget <= 10; ++budget) {
    const Partition made =
        partition(graph, load_policy("torch-2.15"), {.mode = PartitionMode::Budget, .budget = budget / 10.0});
    std::set<NodeIndex> there(made.backward.inputs.begin(), made.backward.inputs.end());
    for (NodeIndex op : made.backward.ops) {
      for_each_input(made.graph.nodes[op], [&](NodeIndex read) { EXPECT_TRUE(there.contains(read)) << budget; });
      there.insert(op);
    }
    for (NodeIndex output : made.backward.outputs) EXPECT_TRUE(output == kNoNode || there.contains(output)) << budget;
  }
}

// Two checkpointed blocks: values that the user marked are kept under every budget.
TEST(MemoryBudget, manual_ac) {
  Tape tape({{64, 1024}});
  const auto block = [&](NodeIndex x, int region) {
    const int begin = tape.size();
    NodeIndex square = tape.mm(x, tape.t(x));
    square = tape.mm(square, square);
    square = tape.mm(square, square);
    const NodeIndex result = tape.mm(square, x);
    for (NodeIndex node = begin; node < tape.size(); ++node) {
      tape.at(node).recompute = CheckpointPolicy::PreferRecompute;
      tape.at(node).region = region;
    }
    return result;
  };
  const JointGraph graph = tape.backward(tape.sum(block(block(tape.input(0), 1), 2)));
  // Held in between: the first block's result. Each block recomputes three of its four products.
  const double wide = 64.0 * 64 * 1024 * 2 / kUnitFlops, square = 64.0 * 64 * 64 * 2 / kUnitFlops;
  const Cost expected{64.0 * 1024 * 4 / kUnitBytes, 2 * (4 * wide + 4 * square + wide + 2 * square)};
  for (double budget : {1.0, 0.01}) {
    const Cost cost = within(graph, budget);
    EXPECT_EQ(cost.memory, expected.memory) << budget;
    EXPECT_NEAR(cost.flops, expected.flops, 1e-9) << budget;
  }
}

}  // namespace
}  // namespace plumbline::partition
