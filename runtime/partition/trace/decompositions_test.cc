#include "runtime/partition/trace/decompositions.h"

#include <numbers>

#include "runtime/partition/testing/trace_testing.h"

namespace plumbline::partition {
namespace {

using M = TracedModule;

constexpr double u = 0x1p-53;

/// Carries a graph of core operators out in float64, and beside every value a bound of what rounding has done to it:
/// running error analysis (Wilkinson; Higham, Accuracy and Stability of Numerical Algorithms, 3.3). For each operator,
/// what the errors of its arguments become, and u |result| for each rounding of its own (2u for a function of
/// LibTorch's vector library); a sum of n terms x errs by no more than n u sum |x| in whatever order it is formed.
class RunningError : public JointRun {
 public:
  using JointRun::JointRun;

  /// One bound for each output; undefined where the output is.
  Tensors bounds() {
    Tensors all;
    for (const NodeIndex output : graph_.outputs) all.push_back(output == kNoNode ? at::Tensor() : error(output));
    return all;
  }

 protected:
  c10::IValue call(NodeIndex index) override {
    const c10::IValue result = JointRun::call(index);
    if (result.isTensor() && result.toTensor().is_floating_point()) errors_[index] = rule(index, result.toTensor());
    return result;
  }

 private:
  at::Tensor error(NodeIndex node) const {
    const auto it = errors_.find(node);
    return it != errors_.end() ? it->second : at::zeros_like(values_[node].toTensor());
  }

  /// A number or a tensor of the call's arguments, and its error.
  std::pair<at::Tensor, at::Tensor> argument(const JointNode& node, size_t i) const {
    const JointArgument& argument = node.args.at(i);
    if (argument.kind == JointArgument::Kind::Node) return {values_[argument.node].toTensor(), error(argument.node)};
    const double number = argument.kind == JointArgument::Kind::Float ? argument.real : double(argument.integer);
    return {at::scalar_tensor(number, at::kDouble), at::zeros({}, at::kDouble)};
  }

  /// The same call on the errors of its floating arguments: for what moves numbers and does not change them, and for
  /// sums.
  at::Tensor on_errors(NodeIndex index, bool magnitudes = false) {
    const JointNode& node = graph_.nodes[index];
    std::map<NodeIndex, c10::IValue> kept;
    for_each_input(node, [&](NodeIndex input) {
      const at::Tensor value = values_[input].toTensor();
      if (kept.contains(input) || !value.is_floating_point()) return;
      kept[input] = value;
      values_[input] = magnitudes ? value.abs() : error(input);
    });
    const at::Tensor result = JointRun::call(index).toTensor();
    for (auto& [input, value] : kept) values_[input] = value;
    return result;
  }

  at::Tensor rule(NodeIndex index, const at::Tensor& result) {
    static const std::set<std::string> moves{"view",          "permute",        "expand", "squeeze", "unsqueeze",
                                             "alias",         "clone",          "select", "slice",   "gather",
                                             "slice_scatter", "select_scatter", "index",  "amax",    "embedding",
                                             "scatter",       "relu",           "where",  "t"};
    const JointNode& node = graph_.nodes[index];
    const std::string op = node.op.substr(6);
    const at::Tensor own = u * result.abs();
    bool exact = true;  // made of no floating number
    for_each_input(node, [&](NodeIndex input) { exact = exact && !values_[input].toTensor().is_floating_point(); });
    if (exact) return at::zeros_like(result);
    if (op == "neg") return error(node.args[0].node);
    if (moves.contains(op)) return on_errors(index);
    if (op == "sum" || op == "mean") {
      const double terms = double(values_[node.args[0].node].toTensor().numel()) / double(result.numel());
      return on_errors(index) + terms * u * on_errors(index, true) + own;
    }
    const auto [x, ex] = argument(node, 0);
    if (op == "exp") return result * at::expm1(ex) + 2 * own;
    if (op == "log") return ex / (x - ex) + 2 * own;
    if (op == "rsqrt") return result * ex / (x - ex) + 2 * own;
    if (op == "tanh" || op == "sigmoid") return ex + 2 * own;
    if (op == "erf") return 2 * std::numbers::inv_sqrtpi * ex + 2 * own;
    if (op == "silu") return 1.2 * ex + 4 * own;
    if (op == "gelu") return 1.2 * ex + 8 * u * x.abs();
    const auto [y, ey] = argument(node, 1);
    if (op == "add" || op == "sub") return ex + ey + own;
    if (op == "mul") return x.abs() * ey + y.abs() * ex + ex * ey + own;
    if (op == "div") return (ex + result.abs() * ey) / (y.abs() - ey) + own;
    if (op == "mm")
      return at::mm(x.abs(), ey) + at::mm(ex, y.abs()) + at::mm(ex, ey) +
             double(x.size(1)) * u * at::mm(x.abs(), y.abs());
    throw std::runtime_error("no rule for the errors of " + node.op);
  }

  std::map<NodeIndex, at::Tensor> errors_;
};

struct Runs {
  JointTrace trace;
  JointGraph parts;
  Tensors inputs, whole;  // primals and tangents; outputs of the graph as traced
};

Runs prepare(const std::function<void(M&)>& build, const Tensors& inputs, const std::set<std::string>& ops,
             bool native_dropout = false) {
  const auto module = module_of(build);
  module->to(at::kDouble);
  const graph::Graph graph = capture_of(*module, module->body, inputs);
  Runs runs{trace_joint(native_dropout ? with_native_dropout(graph) : graph, inputs), {}, {}, {}};
  for (const PrimalSource& primal : runs.trace.primals)
    runs.inputs.push_back(
        (primal.kind == PrimalSource::Kind::Input ? inputs[primal.index] : graph.attributes[primal.index].tensor)
            .detach());
  at::manual_seed(4);
  for (const JointNode& node : runs.trace.graph.nodes) {
    if (node.kind != JointKind::Tangent) continue;
    std::vector<int64_t> shape, strides;
    for (const Extent& extent : node.out.shape) shape.push_back(extent.value);
    for (const Extent& extent : node.out.strides) strides.push_back(extent.value);
    runs.inputs.push_back(at::empty_strided(shape, strides, at::kDouble).normal_());
  }
  at::manual_seed(9);
  runs.whole = JointRun(runs.trace.graph, runs.trace.constants)(runs.inputs);
  runs.parts = decompose(runs.trace.graph, ops);
  for (const JointNode& node : runs.parts.nodes) EXPECT_FALSE(ops.contains(node.op)) << node.name;
  return runs;
}

/// Taking apart and running gives the kernels' results within twice the running error bound of the parts: once for the
/// parts, once for the kernel, which forms the same expressions in an order of its own.
JointGraph expect_within_bound(const std::string& name, const std::function<void(M&)>& build, const Tensors& inputs) {
  SCOPED_TRACE(name);
  const Runs runs = prepare(build, inputs, decomposable());
  RunningError run(runs.parts, runs.trace.constants);
  at::manual_seed(9);
  const Tensors parts = run(runs.inputs);
  const Tensors bounds = run.bounds();
  EXPECT_EQ(parts.size(), runs.whole.size());
  for (size_t i = 0; i < parts.size(); ++i) {
    EXPECT_EQ(parts[i].defined(), runs.whole[i].defined()) << i;
    if (!parts[i].defined()) continue;
    if (!parts[i].is_floating_point()) {
      EXPECT_TRUE(at::equal(parts[i], runs.whole[i])) << i;
      continue;
    }
    const at::Tensor deviation = (parts[i] - runs.whole[i]).abs();
    EXPECT_TRUE((deviation <= 2 * bounds[i]).all().item<bool>())
        << "output " << i << ": " << (deviation / bounds[i]).max().item<double>() << " times the bound";
    EXPECT_LT(bounds[i].max().item<double>(), 1e-10) << "a bound that says nothing";
  }
  return runs.parts;
}

at::Tensor data(at::IntArrayRef shape) { return at::randn(shape, at::kDouble).requires_grad_(); }

TEST(Decompose, ViewsAndSelectionsKeepEveryBit) {
  const std::set<std::string> exact{"aten::t",
                                    "aten::transpose",
                                    "aten::_unsafe_view",
                                    "aten::detach",
                                    "aten::slice_backward",
                                    "aten::select_backward",
                                    "aten::threshold_backward"};
  at::manual_seed(1);
  const Runs runs = prepare(
      [](M& m) {
        const at::Tensor w = m.parameter("w", {6, 4});
        m.body = [=](const Tensors& in) {
          const at::Tensor y = at::linear(at::relu(at::linear(in[0], w)), w.t());
          return Tensors{y.select(1, 0) * y.slice(1, 1, 3, 2).squeeze(1), y.transpose(0, 2), y.detach()};
        };
      },
      {data({2, 3, 4})}, exact);
  at::manual_seed(9);
  const Tensors parts = JointRun(runs.parts, runs.trace.constants)(runs.inputs);
  for (size_t i = 0; i < parts.size(); ++i) EXPECT_TRUE(bitwise_equal(parts[i], runs.whole[i])) << i;
}

TEST(Decompose, SmallBackwards) {
  at::manual_seed(2);
  const auto of = [](at::Tensor (*f)(const at::Tensor&)) {
    return [f](M& m) { m.body = [f](const Tensors& in) { return Tensors{f(in[0])}; }; };
  };
  expect_within_bound("sigmoid", of([](const at::Tensor& x) { return at::sigmoid(x); }), {data({5, 7})});
  expect_within_bound("tanh", of([](const at::Tensor& x) { return at::tanh(x); }), {data({5, 7})});
  expect_within_bound("gelu", of([](const at::Tensor& x) { return at::gelu(x); }), {data({5, 7})});
  expect_within_bound("gelu tanh", of([](const at::Tensor& x) { return at::gelu(x, "tanh"); }), {data({5, 7})});
  expect_within_bound("silu", of([](const at::Tensor& x) { return at::silu(x); }), {data({5, 7})});
  expect_within_bound("relu", of([](const at::Tensor& x) { return at::relu(x); }), {data({5, 7})});
}

TEST(Decompose, MeanSquaredError) {
  at::manual_seed(11);
  for (const int64_t reduction : {at::Reduction::None, at::Reduction::Mean, at::Reduction::Sum})
    expect_within_bound(
        "reduction " + std::to_string(reduction),
        [=](M& m) { m.body = [=](const Tensors& in) { return Tensors{at::mse_loss(in[0], in[1], reduction)}; }; },
        {data({3, 4}), data({3, 4})});
}

TEST(Decompose, Softmax) {
  at::manual_seed(3);
  for (const int64_t dimension : {0, 1, -1})
    expect_within_bound("dimension " + std::to_string(dimension),
                        [=](M& m) {
                          m.body = [=](const Tensors& in) {
                            return Tensors{at::softmax(in[0], dimension), at::log_softmax(in[0], dimension)};
                          };
                        },
                        {data({3, 4, 5})});
}

TEST(Decompose, LayerNorm) {
  at::manual_seed(4);
  for (const bool affine : {true, false})
    for (const std::vector<int64_t>& inner : {std::vector<int64_t>{5}, {4, 5}, {3, 4, 5}})
      expect_within_bound("inner dimensions " + std::to_string(inner.size()),
                          [&](M& m) {
                            const at::Tensor w = affine ? m.parameter("w", inner) : at::Tensor(),
                                             b = affine ? m.parameter("b", inner) : at::Tensor();
                            m.body = [=](const Tensors& in) { return Tensors{at::layer_norm(in[0], inner, w, b)}; };
                          },
                          {data({3, 4, 5})});
}

TEST(Decompose, BatchNorm) {
  at::manual_seed(5);
  for (const bool training : {true, false})
    for (const bool affine : {true, false})
      expect_within_bound(
          std::string(training ? "training" : "evaluating") + (affine ? ", affine" : ""),
          [&](M& m) {
            const at::Tensor mean = m.register_buffer("mean", at::randn({3})),
                             var = m.register_buffer("var", at::rand({3}) + 1);
            m.body = [=](const Tensors& in) {
              return Tensors{at::batch_norm(in[0], affine ? in[1] : at::Tensor(), affine ? in[2] : at::Tensor(), mean,
                                            var, training, 0.1, 1e-5, false)};
            };
          },
          {data({4, 3, 2, 2}), data({3}), data({3})});
}

TEST(Decompose, NegativeLogLikelihood) {
  at::manual_seed(6);
  const at::Tensor target = at::tensor({1, 4, 2, 2, 0}, at::kLong), weight = at::rand({6}, at::kDouble);
  for (const int64_t reduction : {at::Reduction::None, at::Reduction::Mean, at::Reduction::Sum})
    for (const bool weighted : {false, true})
      expect_within_bound("reduction " + std::to_string(reduction) + (weighted ? ", weighted" : ""),
                          [=](M& m) {
                            m.body = [=](const Tensors& in) {
                              return Tensors{at::nll_loss(in[0], in[1], weighted ? in[2] : at::Tensor(), reduction, 2)};
                            };
                          },
                          {data({5, 6}), target, weight});
}

TEST(Decompose, Products) {
  at::manual_seed(7);
  expect_within_bound("addmm",
                      [](M& m) {
                        m.body = [](const Tensors& in) {
                          return Tensors{at::addmm(in[0], in[1], in[2], 0.5, 2), at::addmm(in[0], in[1], in[2])};
                        };
                      },
                      {data({3, 5}), data({3, 4}), data({4, 5})});
}

TEST(Decompose, DropoutsGradientTakesTheMaskThatWasDrawn) {
  const auto dropout = [](M& m) { m.body = [](const Tensors& in) { return Tensors{at::dropout(in[0], 0.75, true)}; }; };
  at::manual_seed(8);
  const Runs runs = prepare(dropout, {data({6, 7})}, decomposable(), /*native_dropout=*/true);
  at::manual_seed(9);
  const Tensors parts = JointRun(runs.parts, runs.trace.constants)(runs.inputs);
  // the factor is 4: nothing is rounded
  for (size_t i = 0; i < parts.size(); ++i) EXPECT_TRUE(bitwise_equal(parts[i], runs.whole[i])) << i;
  EXPECT_GT(parts[1].count_nonzero().item<int64_t>(), 0);
}

TEST(Decompose, HalfPrecisionIsComputedWide) {
  // float32 holds what bfloat16 rounds: the parts give the kernel's bits, or a neighbour where the float32 results
  // differ in their last bit across a border.
  at::manual_seed(8);
  const auto module = module_of([](M& m) {
    m.body = [](const Tensors& in) { return Tensors{at::softmax(at::layer_norm(in[0], {16}, in[1], in[2]), -1)}; };
  });
  const auto half = [](at::IntArrayRef shape) { return at::randn(shape).to(at::kBFloat16).requires_grad_(); };
  const Tensors inputs{half({8, 16}), half({16}), half({16})};
  const JointTrace trace = trace_joint(capture_of(*module, module->body, inputs), inputs);
  Tensors given;
  for (const at::Tensor& input : inputs) given.push_back(input.detach());
  given.push_back(at::randn({8, 16}).to(at::kBFloat16));
  const JointGraph parts = decompose(trace.graph);
  for (const JointNode& node : parts.nodes) EXPECT_FALSE(decomposable().contains(node.op)) << node.name;
  const Tensors whole = JointRun(trace.graph, trace.constants)(given), ours = JointRun(parts, trace.constants)(given);
  const at::Tensor ulps = (ours[0].to(at::kFloat) - whole[0].to(at::kFloat)).abs() / whole[0].to(at::kFloat).abs();
  EXPECT_LE(ulps.max().item<double>(), 0x1p-7);
}

TEST(Decompose, KeepsWhatItIsNotAskedFor) {
  at::manual_seed(9);
  const Runs runs =
      prepare([](M& m) { m.body = [](const Tensors& in) { return Tensors{at::tanh(at::softmax(in[0], -1))}; }; },
              {data({3, 4})}, {"aten::tanh_backward"});
  const std::vector<std::string> whole = ops_of(runs.trace.graph), parts = ops_of(runs.parts);
  EXPECT_EQ(std::count(parts.begin(), parts.end(), "aten::_softmax"), 1);
  EXPECT_EQ(parts.size(), whole.size() - 1 + 3);  // y * y, 1 - that, times the gradient
  std::set<std::string> names;
  for (const JointNode& node : runs.parts.nodes) {
    EXPECT_TRUE(names.insert(node.name).second) << node.name;
    EXPECT_EQ(node.out.device, types::Device{}) << node.name;
  }
  EXPECT_TRUE(names.contains("_softmax_backward_data"));
}

TEST(Decompose, KeepsMarksTagsAndStorages) {
  at::manual_seed(10);
  const auto module = module_of(
      [](M& m) { m.body = [](const Tensors& in) { return Tensors{at::layer_norm(in[0], {4}).view({2, 6}).t()}; }; });
  const Tensors inputs{data({3, 4})};
  JointTrace trace = trace_joint(capture_of(*module, module->body, inputs), inputs);
  for (JointNode& node : trace.graph.nodes)
    if (node.op == "aten::native_layer_norm") node.recompute = CheckpointPolicy::MustRecompute, node.region = 5;
  const JointGraph parts = decompose(trace.graph);
  int tagged = 0;
  for (const JointNode& node : parts.nodes) {
    if (node.region == 5 && node.kind == JointKind::Call) {
      ++tagged;
      EXPECT_EQ(node.mark, JointMark::IsForward) << node.name;
      EXPECT_EQ(node.recompute, CheckpointPolicy::MustRecompute) << node.name;
    }
  }
  EXPECT_GE(tagged, 6);
  const JointNode& output = parts.nodes[parts.outputs[0]];
  const JointNode& viewed = parts.nodes[parts.nodes[output.args[0].node].args[0].node];
  EXPECT_EQ(viewed.op, "aten::mul");
  EXPECT_EQ(output.out.storage, viewed.out.storage) << "a view stays in the memory of what it views";
}

}  // namespace
}  // namespace plumbline::partition
