#include "runtime/split/split.h"

#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/nn/module.h>

#include <random>
#include <set>

#include "runtime/capture/call.h"
#include "runtime/error.h"
#include "runtime/graph/interpreter.h"
#include "runtime/graph/text.h"
#include "runtime/split/module_pipe.h"

namespace plumbline {
namespace {

using Tensors = std::vector<at::Tensor>;
using Where = SplitPoint::Where;

/// Why split refuses; "accepted" where it does not.
template <class Call>
std::string refusal(Call&& call) try {
  call();
  return "accepted";
} catch (const InputError& error) {
  return error.what();
}
void expect_part(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << text << "\nlacks: " << part;
}

/// A chain of calls, one letter each (r relu, n neg, s sin, c cos), where '|' is a marker.
Graph chain(const std::string& program, const std::vector<ModuleCall>& modules = {}) {
  const std::map<char, std::string> ops = {{'r', "relu"}, {'n', "neg"}, {'s', "sin"}, {'c', "cos"}};
  std::string text = "input %0: f32[2] = \"x\"\n";
  int value = 0;
  for (char letter : program) {
    const std::string from = "(%" + std::to_string(value) + ")\n";
    text +=
        letter == '|' ? "pipe_split\n" : "%" + std::to_string(++value) + ": f32[2] = aten::" + ops.at(letter) + from;
  }
  Graph graph = parse_graph(text + "return %" + std::to_string(value) + "\n");
  graph.module_calls = modules;
  return graph;
}

/// The inverse: letters of each stage's calls, with '|' between stages.
std::string letters(const Pipe& pipe) {
  std::string text;
  for (const Stage& stage : pipe.stages) {
    if (&stage != &pipe.stages[0]) text += "|";
    for (const Node& node : stage.graph.nodes) text += node.op->operator_name().name.at(6);
  }
  return text;
}

std::string boundary_text(const Pipe& pipe) {
  std::string text;
  for (const Boundary& b : pipe.boundaries) {
    text += b.name + ":" + std::to_string(b.producer) + "." + std::to_string(b.output) + ">";
    for (const auto& consumer : b.consumers)
      text += std::to_string(consumer.stage) + "." + std::to_string(consumer.input) + ",";
    text += b.has_gradient ? "g " : " ";
  }
  return text;
}

TEST(Split, CutsAtMarkersAndNeverMakesAnEmptyStage) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"rns", "rns"}, {"r|n|s", "r|n|s"},          {"r||n", "r|n"}, {"|r|n", "r|n"}, {"r|n|", "r|n"}, {"|||r", "r"},
      {"r|||", "r"},  {"||r||ns|||c||", "r|ns|c"}, {"", ""},        {"|", ""},
  };
  for (const auto& [program, expected] : cases) EXPECT_EQ(letters(split(chain(program))), expected) << program;
}

TEST(Split, CutsAtModulesByName) {
  const std::vector<ModuleCall> modules = {{"a", "A", 0, 2}, {"a.in", "B", 1, 2},  {"b", "A", 2, 3},
                                           {"a", "A", 3, 4}, {"empty", "E", 2, 2}, {"all", "C", 0, 5}};
  const auto cut = [&](const std::vector<SplitPoint>& points) {
    return letters(split(chain("rnscr", modules), {points, {}}));
  };
  EXPECT_EQ(cut({{"b", Where::Beginning}}), "rn|scr");
  EXPECT_EQ(cut({{"b", Where::End}}), "rns|cr");
  EXPECT_EQ(cut({{"a.in"}}), "r|nscr");
  EXPECT_EQ(cut({{"a", Where::Beginning}}), "rns|cr") << "entered twice; the first entry has no call before it";
  EXPECT_EQ(cut({{"a", Where::End}}), "rn|sc|r");
  EXPECT_EQ(cut({{"a", Where::End}, {"b"}, {"b", Where::End}, {"a"}, {"empty"}}), "rn|s|c|r");
  EXPECT_EQ(cut({{"all"}, {"all", Where::End}}), "rnscr");
  EXPECT_EQ(cut({{"empty"}, {"empty", Where::End}}), "rn|scr");
  EXPECT_EQ(letters(split(chain("r|n", {{"m", "M", 1, 3}}), {{{"m"}}, {}})), "r|n")
      << "a module that opens with a marker";
  EXPECT_EQ(refusal([&] { cut({{"a"}, {"a.i"}}); }),
            "split: no module named 'a.i' was entered; entered were: a, a.in, all, b, empty");
  expect_part(refusal([] { split(chain("r"), {{{"a"}}, {}}); }), "enters none through plumbline::call()");
  const Pipe pipe = split(chain("rnscr", modules), {{{"a.in"}, {"b", Where::End}}, {}});
  std::string calls;
  for (const Stage& stage : pipe.stages) {
    for (const ModuleCall& m : stage.graph.module_calls)
      calls += m.name + std::to_string(m.begin) + std::to_string(m.end) + " ";
    calls += "| ";
  }
  EXPECT_EQ(calls, "a01 all01 | a01 a.in01 b12 all02 | a01 all02 | ");
}

TEST(Split, ChoosesPointsEvenly) {
  const std::vector<std::string> names = {"b1", "b2", "b3", "b4", "b5", "b6", "b7"};
  for (int stages = 1; stages <= 8; ++stages) {
    std::vector<int> cuts = {0};
    for (const SplitPoint& point : choose_split_points(names, stages)) {
      EXPECT_EQ(point.where, Where::Beginning);
      cuts.push_back(point.module.at(1) - '0');
    }
    cuts.push_back(8);
    ASSERT_EQ(cuts.size(), stages + 1u);
    for (int s = 0; s < stages; ++s) {
      EXPECT_GE(cuts[s + 1] - cuts[s], 8 / stages) << stages;
      EXPECT_LE(cuts[s + 1] - cuts[s], (8 + stages - 1) / stages) << stages;
    }
  }
  EXPECT_EQ(choose_split_points({}, 1).size(), 0u);
  for (int stages : {0, -1, 9})
    expect_part(refusal([&] { choose_split_points(names, stages); }), "7 split points, which allow 1 to 8 stages");
}

TEST(Split, AValueGoesStraightToEveryStageThatUsesIt) {
  const Pipe pipe = split(parse_graph(R"(input %0: f32[2]* = "x"
input %1: i64[2] = "index"
input %2: f32[2] = "unused"
%3: f32[2]* = aten::relu(%0)
%4: i64[2] = aten::neg(%1)
pipe_split
%5: f32[2]* = aten::neg(%3)
pipe_split
%6: f32[2]* = aten::add.Tensor(%5, %3, 1)
pipe_split
%7: f32[2]* = aten::add.Tensor(%6, %3, 1)
%8: f32[2]* = aten::mul.Tensor(%7, %1)
return %8, %5, None, %0, %3, %8
)"));
  EXPECT_EQ(boundary_text(pipe), "x:0.0>3.0,g index:0.1>3.1, v3:0.2>1.0,2.0,3.2,g v5:1.0>2.1,3.3,g v6:2.0>3.4,g ");
  EXPECT_EQ(pipe.stages[0].graph.inputs.size(), 3u);
  EXPECT_EQ(pipe.stages[0].inputs.size(), 0u);
  EXPECT_EQ(pipe.stages[3].outputs.size(), 0u);
  EXPECT_EQ(pipe.boundaries[1].value.dtype, at::kLong);
  EXPECT_EQ(pipe.boundaries[1].value.sizes, std::vector<int64_t>{2});
  const Graph& last = pipe.stages[3].graph;
  ASSERT_EQ(last.outputs.size(), 6u);
  EXPECT_EQ(last.outputs[2], kNoValue);
  EXPECT_EQ(last.outputs[0], last.outputs[5]);
  EXPECT_EQ(last.outputs[3], last.inputs[0].value);
  for (size_t i = 0; i < last.inputs.size(); ++i)
    EXPECT_EQ(last.inputs[i].name, pipe.boundaries[pipe.stages[3].inputs[i]].name);
}

TEST(Split, OnlyWhatTheLossDependsOnHasAGradient) {
  const Graph graph = parse_graph(R"(input %0: f32[2]* = "x"
%1: f32[2]* = aten::relu(%0)
%2: f32[2]* = aten::neg(%0)
%3: f32[2]* = aten::sin(%0)
%4: f32[2]* = aten::cos(%0)
pipe_split
%5: f32[2] = aten::detach(%1)
%6: f32[2] = aten::neg(%2) no_grad
%7: f32[2]* = aten::add.Tensor(%3, %5, 1)
%8: f32[2]* = aten::add.Tensor(%7, %6, 1)
%9: f32[2]* = aten::neg(%4)
return %8, %9, %6
)");
  const auto gradients = [&](std::optional<std::vector<int>> loss) {
    std::string names;
    for (const Boundary& b : split(graph, {{}, std::move(loss)}).boundaries)
      if (b.has_gradient) names += b.name;
    return names;
  };
  EXPECT_EQ(gradients(std::nullopt), "v3v4");
  EXPECT_EQ(gradients(std::vector{0}), "v3");
  EXPECT_EQ(gradients(std::vector{1}), "v4");
  EXPECT_EQ(gradients(std::vector{2}), "");
  EXPECT_EQ(gradients(std::vector<int>{}), "");
}

TEST(Split, TextKnowsNoMemoryYetInPlaceIsHeldApart) {
  const std::string text = R"(input %0: f32[2] = "x"
buffer %1: f32[2] = "mask"
%2: f32[2] = aten::add.Tensor(%0, %1, 1)
%3: f32[2] = aten::relu_(%2)
pipe_split
%4: f32[2] = aten::add.Tensor(%3, %1, 1)
)";
  EXPECT_EQ(split(parse_graph(text + "return %4\n")).num_stages(), 2) << "relu_ does not write the buffer";
  const auto refusal_of_neg = [&](const std::string& value) {
    return refusal([&] { split(parse_graph(text + "%5: f32[2] = aten::neg_(" + value + ")\nreturn %5\n")); });
  };
  expect_part(refusal_of_neg("%3"),
              "aten::neg_ in stage 1 changes in place the memory of %3 f32[2], which stage 0 made");
  expect_part(refusal_of_neg("%1"), "writes the memory of 'mask', which stage 0 uses as well");
}

/// A layer with a weight, a bias and a buffer, all of small integers.
struct Layer : torch::nn::Module {
  at::Tensor forward(const at::Tensor& x) { return x.matmul(w) + b; }
  at::Tensor w = register_parameter("w", at::randint(-1, 2, {4, 4}, at::kDouble));
  at::Tensor b = register_parameter("b", at::randint(-1, 2, {4}, at::kDouble));
  at::Tensor count = register_buffer("count", at::randint(-1, 2, {4}, at::kDouble));
};

/// Layers "a" to "d", and a forward that is a lambda.
struct Net : torch::nn::Module {
  using Body = std::function<Tensors(Net&, const Tensors&)>;
  explicit Net(Body f) : body(std::move(f)) {
    for (const char* name : {"a", "b", "c", "d"}) layers.push_back(register_module(name, std::make_shared<Layer>()));
  }
  ModelHandle handle() {
    return {this, [this](const Tensors& in) { return body(*this, in); }, {"x"}};
  }
  at::Tensor run(int layer, const at::Tensor& x) { return call(layers[layer], x); }
  const at::Tensor& count(int layer) { return layers[layer]->count; }
  std::vector<std::shared_ptr<Layer>> layers;
  Body body;
};

Pipe pipe_of(Net& net, const SplitOptions& options = {}) {
  return make_pipe(net.handle(), {at::randint(-2, 3, {4, 4}, at::kDouble)}, true, options);
}

TEST(Split, StagesOwnTheirStateUnderTheOriginalNames) {
  at::manual_seed(1);
  Net net([](Net& n, const Tensors& in) {
    const at::Tensor h = n.run(0, in[0]) + n.count(0);
    pipe_split();
    const at::Tensor k = n.run(1, h) + n.layers[0]->w + n.count(0);
    pipe_split();
    return Tensors{n.run(3, k).matmul(n.layers[0]->w)};  // c is never entered
  });
  net.register_parameter("tied", net.layers[1]->b);
  net.layers[0]->w.requires_grad_(false);
  const Pipe pipe = pipe_of(net);
  ASSERT_EQ(pipe.num_stages(), 3);
  ASSERT_EQ(pipe.shared.size(), 1u);
  EXPECT_EQ(pipe.shared[0].name, "a.w");
  EXPECT_EQ(pipe.shared[0].stages, (std::vector<int>{0, 1, 2}));
  std::map<std::string, Tensors> copies;
  size_t aliases = 0;
  for (int s = 0; s < 3; ++s) {
    const StageState state = make_stage_state(pipe, s);
    for (const auto& tensors : {state.parameters, state.buffers})
      for (const auto& [name, tensor] : tensors) copies[name].push_back(tensor);
    Graph graph = pipe.stages[s].graph;
    bind(graph, state);
    for (const Attribute& attribute : graph.attributes) {
      const auto& tensors = attribute.kind == AttributeKind::Parameter ? state.parameters : state.buffers;
      EXPECT_TRUE(attribute.tensor.is_same(tensors.at(attribute.name))) << attribute.name;
      aliases += attribute.aliases.size();
    }
  }
  EXPECT_EQ(aliases, 1u);
  EXPECT_EQ(copies.size(), 12u) << "eight parameters, one of them under two names, and four buffers";
  for (const auto& tensors : {net.named_parameters(), net.named_buffers()}) {
    for (const auto& item : tensors) {
      SCOPED_TRACE(item.key());
      if (!copies.contains(item.key())) continue;  // the other name of "b.b"
      EXPECT_EQ(copies[item.key()].size(), item.key() == "a.w" ? 3u : item.key() == "a.count" ? 2u : 1u);
      EXPECT_TRUE(copies[item.key()][0].is_same(item.value()));
      std::set<const void*> memory;
      for (const at::Tensor& copy : copies[item.key()]) {
        EXPECT_TRUE(at::equal(copy, item.value()));
        EXPECT_EQ(copy.requires_grad(), item.value().requires_grad());
        EXPECT_TRUE(copy.is_leaf());
        EXPECT_TRUE(memory.insert(copy.data_ptr()).second) << "copies share memory";
      }
    }
  }
}

TEST(Split, CapturedModulesAreCutByName) {
  at::manual_seed(1);
  Net net([](Net& n, const Tensors& in) { return Tensors{n.run(1, n.run(2, n.run(1, n.run(0, in[0]))))}; });
  EXPECT_EQ(pipe_of(net, {{{"b"}}, {}}).num_stages(), 3);
  const Pipe pipe = pipe_of(net, {{{"b", Where::End}}, {}});
  ASSERT_EQ(pipe.num_stages(), 2);
  EXPECT_EQ(pipe.shared.size(), 2u);
  expect_part(refusal([&] { pipe_of(net, {{{"d"}}, {}}); }), "'d' was entered; entered were: a, b, c");
}

TEST(Split, RefusesInPlaceAcrossABorder) {
  at::manual_seed(1);
  const auto expect = [](const std::string& part, const Net::Body& body) {
    Net net(body);
    net.register_buffer("view", net.count(0).detach());
    expect_part(refusal([&] { pipe_of(net); }), part);
  };
  expect("aten::mul_.Scalar in stage 1 changes in place the memory of %", [](Net& n, const Tensors& in) {
    const at::Tensor h = n.run(0, in[0]);
    pipe_split();
    h.select(0, 0).mul_(2);
    return Tensors{h};
  });
  expect(", which stage 0 made; use", [](Net& n, const Tensors& in) {
    const at::Tensor h = n.run(0, in[0]), view = h.t();
    pipe_split();
    const at::Tensor k = n.run(1, h);
    pipe_split();
    return Tensors{view.add_(k)};
  });
  expect("accepted", [](Net& n, const Tensors& in) {
    const at::Tensor h = n.run(0, in[0]);
    h.select(0, 0).mul_(2);
    pipe_split();
    n.count(1).add_(1);
    return Tensors{h.clone().add_(1) * n.count(1)};
  });
  expect("in stage 0 writes the memory of 'a.count', which stage 1 uses as well", [](Net& n, const Tensors& in) {
    n.count(0).add_(1);
    const at::Tensor h = n.run(0, in[0]);
    pipe_split();
    return Tensors{h + n.count(0)};
  });
  // The test's "view" is the memory of "a.count": whichever of the two is written, the other is too.
  expect("in stage 1 writes the memory of 'view', which stage 0 uses as well", [](Net& n, const Tensors& in) {
    const at::Tensor h = n.run(0, in[0]) + n.count(0);
    pipe_split();
    n.named_buffers()["view"].add_(1);
    return Tensors{h};
  });
  expect("in stage 1 writes the memory of 'view', which stage 0 uses as well", [](Net& n, const Tensors& in) {
    const at::Tensor h = n.run(0, in[0]) + n.named_buffers()["view"];
    pipe_split();
    n.count(0).add_(1);
    return Tensors{h};
  });
}

/// The oracle's way through a pipe: stage after stage on detached values, gradients by plain autograd, summed by hand.
struct Outcome {
  Tensors outputs, input_grads;
  std::map<std::string, at::Tensor> grads;
};
void add(at::Tensor& sum, const at::Tensor& more) {
  if (more.defined()) sum = sum.defined() ? sum + more : more.clone();
}

Outcome run_stages(const Pipe& pipe, const Tensors& inputs) {
  const size_t n = pipe.stages.size();
  std::vector<Tensors> in(n), out(n), back(n);
  std::vector<StageState> states;
  Outcome outcome;
  for (size_t s = 0; s < n; ++s) {
    Graph graph = pipe.stages[s].graph;
    states.push_back(make_stage_state(pipe, static_cast<int>(s)));
    bind(graph, states.back());
    if (s == 0)
      for (const at::Tensor& x : inputs) in[0].push_back(x.detach().requires_grad_(x.requires_grad()));
    for (int b : pipe.stages[s].inputs) {
      const Boundary& boundary = pipe.boundaries[b];
      const at::Tensor& value = out[boundary.producer][boundary.output];
      EXPECT_TRUE(value.requires_grad() || !boundary.has_gradient) << boundary.name;
      in[s].push_back(value.detach().clone().requires_grad_(boundary.value.requires_grad));
    }
    Interpreter(graph).run(in[s], out[s]);
  }
  outcome.outputs = out.back();
  for (size_t s = n; s-- > 0;) {
    Tensors roots, grads;
    if (s + 1 == n && out[s][0].requires_grad()) {
      roots.push_back(out[s][0]);
      grads.push_back(at::ones_like(out[s][0]));
    }
    for (int b : pipe.stages[s].outputs) {
      const Boundary& boundary = pipe.boundaries[b];
      if (!boundary.has_gradient) continue;
      at::Tensor grad;
      for (const auto& consumer : boundary.consumers) add(grad, back[consumer.stage][consumer.input]);
      if (!grad.defined()) continue;
      roots.push_back(out[s][boundary.output]);
      grads.push_back(grad);
    }
    if (!roots.empty()) torch::autograd::backward(roots, grads);
    for (const at::Tensor& input : in[s]) back[s].push_back(input.grad());
    for (auto& [name, parameter] : states[s].parameters) {
      add(outcome.grads[name], parameter.grad());
      parameter.mutable_grad() = at::Tensor();
    }
  }
  outcome.input_grads = back[0];
  return outcome;
}

/// About 20 calls that are exact on small integers, so that gradients are the same bits in whatever order they are
/// summed: skips, shared and unused parameters, views, in-place writes through views, detach and no_grad.
Tensors random_program(Net& net, const Tensors& in, unsigned seed) {
  std::mt19937 random(seed);
  Tensors made = {in[0], in[1]};
  const auto any = [&] {
    return made[random() % 4 == 0 ? random() % made.size()
                                  : made.size() - 1 - random() % std::min<size_t>(3, made.size())];
  };
  for (int i = 0; i < 20; ++i) {
    const Layer& layer = *net.layers[random() % 4];
    const unsigned op = random() % 10;
    const c10::AutoGradMode grad_mode(op != 7);
    at::Tensor v = any();
    if (op == 0) v = v.matmul(layer.w);
    if (op == 1) v = v + layer.b;
    if (op == 2) v = v * layer.count;
    if (op == 3) v = at::relu(v);
    if (op == 4) v = v.t();
    if (op == 5) v = at::cat({v.narrow(0, 0, 2), any().narrow(0, 1, 2)});
    if (op == 6) {
      const at::Tensor row = v.select(0, 1);
      v = at::zeros({4, 4}, at::kDouble);
      v.select(0, 2).copy_(row);
      v.narrow(1, 1, 2).add_(any().narrow(1, 0, 2));
    }
    if (op == 8) v = v.detach();
    if (op > 6) v = v - any();
    made.push_back(v);
  }
  return {(made.back() - made[made.size() - 2]).sum(), any() * 2, in[1], made[made.size() / 2]};
}

TEST(Split, RandomGraphsCutAnywhereComputeWhatTheWholeDoes) {
  int cuts = 0, refused = 0;
  for (unsigned seed = 0; seed < 50; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    at::manual_seed(seed);
    std::mt19937 random(seed + 1000);
    Net net([seed](Net& n, const Tensors& in) { return random_program(n, in, seed); });
    const at::Tensor x = at::randint(-2, 3, {4, 4}, at::kDouble).requires_grad_(seed % 2 == 0);
    const Tensors inputs = {x, at::randint(-2, 3, {4, 4}, at::kDouble)};
    Graph graph = capture(net, net.handle().forward, {{"x", inputs[0]}, {"y", inputs[1]}});
    const SplitOptions loss = {{}, std::vector{0}};
    for (int i = 0; i < 4; ++i) {  // markers anywhere that in-place calls allow
      Graph marked = graph;
      marked.nodes.insert(marked.nodes.begin() + random() % (graph.nodes.size() + 1), Node{});
      const bool accepted = refusal([&] { split(marked, loss); }) == "accepted";
      if (accepted) graph = marked;
      refused += !accepted;
    }
    const Pipe pipe = split(graph, loss);
    cuts += pipe.num_stages() - 1;
    const Outcome staged = run_stages(pipe, inputs);
    const Tensors whole = random_program(net, inputs, seed);
    if (whole[0].requires_grad()) whole[0].backward();
    for (size_t i = 0; i < whole.size(); ++i) EXPECT_TRUE(at::equal(staged.outputs[i], whole[i])) << "output " << i;
    const auto same = [](const at::Tensor& got, const at::Tensor& expected, const std::string& what) {
      ASSERT_TRUE(got.defined() || !expected.defined()) << what;
      if (!got.defined()) return;
      EXPECT_TRUE(at::equal(got, expected.defined() ? expected : at::zeros_like(got))) << what;
      EXPECT_LT(got.abs().max().item<double>(), 1e15) << "no longer exact: " << what;
    };
    same(staged.input_grads[0], x.grad(), "gradient of x");
    for (const auto& item : net.named_parameters()) same(staged.grads.at(item.key()), item.value().grad(), item.key());
  }
  EXPECT_GT(cuts, 100);
  EXPECT_GT(refused, 5);
}

}  // namespace
}  // namespace plumbline
