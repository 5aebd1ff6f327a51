// Split of captured modules: who owns which state, refusals, and the oracle: stages run one after the other on detached
// values compute the same as the whole module under plain autograd.
#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/variable.h>
#include <torch/nn/module.h>

#include <algorithm>
#include <random>
#include <set>
#include <tuple>

#include "runtime/capture/call.h"
#include "runtime/error.h"
#include "runtime/graph/run/program.h"
#include "runtime/split/module_pipe.h"
#include "runtime/testing/refusal.h"

namespace plumbline::split {
namespace {

using Tensors = std::vector<at::Tensor>;

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

/// The second of three inputs is None: forward gets None, and no stage takes it.
TEST(SplitModules, AnInputThatIsNoneIsNoInputOfThePipe) {
  at::manual_seed(2);
  Net net([](Net& n, const Tensors& in) {
    const at::Tensor h = n.run(0, in[0]);
    capture::pipe_split();
    const at::Tensor k = in[1].defined() ? h * in[1] : h;
    return Tensors{n.run(1, k) + in[2], in[1]};
  });
  ModelHandle model = net.handle();
  model.input_names = {"x", "mask", "late"};
  const auto random = [] { return at::randint(-2, 3, {4, 4}, at::kDouble); };
  for (const bool given : {true, false}) {
    const Tensors inputs = {random(), given ? random() : at::Tensor(), random()};
    const Pipe pipe = make_pipe(model, inputs, true, {});
    std::vector<std::string> taken, crossing;
    for (const graph::GraphInput& input : pipe.stages[0].graph.inputs) taken.push_back(input.name);
    for (const Boundary& boundary : pipe.boundaries) crossing.push_back(boundary.name);
    EXPECT_EQ(taken, given ? model.input_names : (std::vector<std::string>{"x", "late"}));
    EXPECT_EQ(std::ranges::count(crossing, "mask"), given);
    Tensors made, outputs;
    const Tensors first = given_inputs(inputs);
    ASSERT_EQ(first.size(), taken.size());
    graph::Program(pipe.stages[0].graph).run(first, made);
    Tensors second;
    for (const int b : pipe.stages[1].inputs) second.push_back(made.at(pipe.boundaries[b].output));
    graph::Program(pipe.stages[1].graph).run(second, outputs);
    const Tensors expected = net.body(net, inputs);
    EXPECT_TRUE(at::equal(outputs.at(0), expected.at(0)));
    EXPECT_EQ(outputs.at(1).defined(), given);
  }
}

/// A module's last value need not be its result: the result's name must not depend on the mode.
TEST(SplitModules, AValueIsCalledAfterTheModuleThatReturnsIt) {
  struct Counting : torch::nn::Module {
    at::Tensor forward(const at::Tensor& x) {
      const at::Tensor half = x * 2, result = half + 1;
      if (is_training()) count.copy_(count + half.detach());  // the last to run
      return result;
    }
    at::Tensor count = register_buffer("count", at::zeros({4, 4}, at::kDouble));
  };
  struct Around : torch::nn::Module {
    at::Tensor forward(const at::Tensor& x) { return call(inner, x); }
    std::shared_ptr<Counting> inner = register_module("inner", std::make_shared<Counting>());
  };
  struct Root : torch::nn::Module {
    std::shared_ptr<Around> around = register_module("around", std::make_shared<Around>());
    std::shared_ptr<Counting> late = register_module("late", std::make_shared<Counting>());
  } root;
  const capture::ForwardFunction forward = [&](const Tensors& in) {
    const at::Tensor h = call(root.around, in[0]);
    const at::Tensor k = call(root.late, h);
    const at::Tensor sum = h + k;
    capture::pipe_split();
    return Tensors{sum * k + h};
  };
  for (const bool training : {true, false}) {
    training ? root.train() : root.eval();
    const Pipe pipe = make_pipe({&root, forward, {"x"}}, {at::ones({4, 4}, at::kDouble)}, training, {});
    std::set<std::string> crossing;
    for (const Boundary& boundary : pipe.boundaries) crossing.insert(boundary.name);
    EXPECT_EQ(crossing, (std::set<std::string>{"around", "late", "add"})) << (training ? "training" : "evaluation");
  }
}

TEST(SplitModules, StagesOwnTheirStateUnderTheOriginalNames) {
  at::manual_seed(1);
  Net net([](Net& n, const Tensors& in) {
    const at::Tensor h = n.run(0, in[0]) + n.count(0);
    capture::pipe_split();
    const at::Tensor k = n.run(1, h) + n.layers[0]->w + n.count(0);
    capture::pipe_split();
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
    graph::Graph graph = pipe.stages[s].graph;
    bind(graph, state);
    for (const graph::Attribute& attribute : graph.attributes) {
      const auto& tensors = attribute.kind == graph::AttributeKind::Parameter ? state.parameters : state.buffers;
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

TEST(SplitModules, CapturedModulesAreCutByName) {
  at::manual_seed(1);
  Net net([](Net& n, const Tensors& in) { return Tensors{n.run(1, n.run(2, n.run(1, n.run(0, in[0]))))}; });
  EXPECT_EQ(pipe_of(net, {{{"b"}}, {}}).num_stages(), 3);
  const Pipe pipe = pipe_of(net, {{{"b", SplitPoint::Where::End}}, {}});
  ASSERT_EQ(pipe.num_stages(), 2);
  EXPECT_EQ(pipe.shared.size(), 2u);
  testing::expect_part(testing::refusal([&] { pipe_of(net, {{{"d"}}, {}}); }),
                       "'d' was entered; there is no 'd'; entered were: a, b, c");
}

TEST(SplitModules, RefusesInPlaceAcrossABorder) {
  at::manual_seed(1);
  const auto expect = [](const std::string& part, const Net::Body& body) {
    Net net(body);
    net.register_buffer("view", net.count(0).detach());
    testing::expect_part(testing::refusal([&] { pipe_of(net); }), part);
  };
  expect("aten::mul_.Scalar in stage 1 changes in place the memory of %", [](Net& n, const Tensors& in) {
    const at::Tensor h = n.run(0, in[0]);
    capture::pipe_split();
    h.select(0, 0).mul_(2);
    capture::pipe_split();
    return Tensors{h.neg()};
  });
  expect("which stage 0 made and stage 1 reads by another path", [](Net& n, const Tensors& in) {
    const at::Tensor h = n.run(0, in[0]), view = h.t();
    capture::pipe_split();
    h.mul_(2);
    return Tensors{h + view};
  });
  // Autograd makes a circle of it, which has to be cut by hand: the node of k saves h, whose history then is that of
  // the addition, and so of k.
  at::Tensor in_a_circle;
  expect("accepted", [&](Net& n, const Tensors& in) {
    const at::Tensor h = in_a_circle = n.run(0, in[0]), view = h.t();
    capture::pipe_split();
    const at::Tensor k = n.run(1, h);
    capture::pipe_split();
    return Tensors{view.add_(k)};
  });
  in_a_circle.detach_();
  expect("accepted", [](Net& n, const Tensors& in) {
    const at::Tensor h = n.run(0, in[0]);
    h.select(0, 0).mul_(2);
    capture::pipe_split();
    n.count(1).add_(1);
    return Tensors{h.clone().add_(1) * n.count(1)};
  });
  expect("in stage 0 writes the memory of 'view', which stage 1 uses as well", [](Net& n, const Tensors& in) {
    n.count(0).add_(1);
    const at::Tensor h = n.run(0, in[0]);
    capture::pipe_split();
    return Tensors{h + n.named_buffers()["view"]};
  });
  expect("accepted", [](Net& n, const Tensors& in) {
    n.count(0).add_(1);
    const at::Tensor h = n.run(0, in[0]);
    capture::pipe_split();
    return Tensors{h + n.count(0)};
  });
  // The test's "view" shares the memory of "a.count": a write to either writes the other.
  expect("in stage 1 writes the memory of 'view', which stage 0 uses as well", [](Net& n, const Tensors& in) {
    const at::Tensor h = n.run(0, in[0]) + n.count(0);
    capture::pipe_split();
    n.named_buffers()["view"].add_(1);
    return Tensors{h};
  });
  expect("in stage 1 writes the memory of 'view', which stage 0 uses as well", [](Net& n, const Tensors& in) {
    const at::Tensor h = n.run(0, in[0]) + n.named_buffers()["view"];
    capture::pipe_split();
    n.count(0).add_(1);
    return Tensors{h};
  });
}

TEST(SplitModules, LaterStagesAreSentWhatAStageWroteIntoItsBuffer) {
  at::manual_seed(1);
  Net net([](Net& n, const Tensors& in) {
    n.count(0).add_(in[0].sum(0));
    const at::Tensor h = n.run(0, in[0]), row = n.count(0).narrow(0, 1, 2);
    capture::pipe_split();
    return Tensors{h * n.count(0), row};
  });
  const at::Tensor x = at::ones({4, 4}, at::kDouble), before = net.count(0).clone();
  const Pipe pipe = pipe_of(net);
  EXPECT_TRUE(pipe.shared.empty());
  ASSERT_EQ(pipe.num_stages(), 2);
  EXPECT_EQ(make_stage_state(pipe, 1).buffers.count("a.count"), 0u) << "no copy of it in the later stage";
  std::vector<std::unique_ptr<graph::Program>> stages;
  for (const Stage& stage : pipe.stages) stages.push_back(std::make_unique<graph::Program>(stage.graph));
  // Two micro-batches: both leave stage 0 before stage 1 takes the first.
  Tensors first, second, outputs;
  stages[0]->run(Tensors{x}, first);
  stages[0]->run(Tensors{x}, second);
  const auto finish = [&](const Tensors& arrived, double times) {
    Tensors inputs(pipe.stages[1].graph.inputs.size());
    for (size_t i = 0; i < inputs.size(); ++i) inputs[i] = arrived[pipe.boundaries[pipe.stages[1].inputs[i]].output];
    stages[1]->run(inputs, outputs);
    const at::Tensor count = before + 4 * times;
    EXPECT_TRUE(at::equal(outputs[0], net.layers[0]->forward(x) * count)) << times;
    EXPECT_TRUE(at::equal(outputs[1], count.narrow(0, 1, 2))) << times;
  };
  finish(first, 1);
  finish(second, 2);
}

/// The oracle's run of a pipe: stage after stage on detached values, gradients by plain autograd, summed by hand.
struct Outcome {
  Tensors outputs, input_grads;
  std::map<std::string, at::Tensor> grads;
};
void add(at::Tensor& sum, const at::Tensor& more) {
  if (more.defined()) sum = sum.defined() ? sum + more : more.clone();
}

Outcome run_stages(const Pipe& pipe, const Tensors& inputs, at::MemoryFormat layout = at::MemoryFormat::Preserve) {
  const size_t n = pipe.stages.size();
  std::vector<Tensors> in(n), out(n), back(n);
  std::vector<StageState> states;
  Outcome outcome;
  for (size_t s = 0; s < n; ++s) {
    graph::Graph graph = pipe.stages[s].graph;
    states.push_back(make_stage_state(pipe, static_cast<int>(s)));
    bind(graph, states.back());
    if (s == 0)
      for (const at::Tensor& x : inputs) in[0].push_back(x.detach().requires_grad_(x.requires_grad()));
    for (int b : pipe.stages[s].inputs) {
      const Boundary& boundary = pipe.boundaries[b];
      const at::Tensor& value = out[boundary.producer][boundary.output];
      EXPECT_TRUE(value.requires_grad() || !boundary.has_gradient) << boundary.name;
      in[s].push_back(value.detach().clone(layout).requires_grad_(boundary.value.requires_grad));
    }
    graph::Program(graph).run(in[s], out[s]);
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

/// About 20 calls that are exact on small integers, so that gradients have the same bits in any order of summation:
/// skips, shared and unused parameters, views, in-place writes through views, detach and no_grad.
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

TEST(SplitModules, RandomGraphsCutAnywhereComputeWhatTheWholeDoes) {
  int cuts = 0, refused = 0, copies = 0;
  for (unsigned seed = 0; seed < 50; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    at::manual_seed(seed);
    std::mt19937 random(seed + 1000);
    Net net([seed](Net& n, const Tensors& in) { return random_program(n, in, seed); });
    const at::Tensor x = at::randint(-2, 3, {4, 4}, at::kDouble).requires_grad_(seed % 2 == 0);
    const Tensors inputs = {x, at::randint(-2, 3, {4, 4}, at::kDouble)};
    graph::Graph graph = capture::capture(net, net.handle().forward, {{"x", inputs[0]}, {"y", inputs[1]}});
    const SplitOptions loss = {{}, std::vector{0}};
    for (int i = 0; i < 4; ++i) {  // markers anywhere that in-place calls allow
      graph::Graph marked = graph;
      marked.nodes.insert(marked.nodes.begin() + random() % (graph.nodes.size() + 1), graph::Node{});
      const bool accepted = testing::refusal([&] { split(marked, loss); }) == "accepted";
      if (accepted) graph = marked;
      refused += !accepted;
    }
    const Pipe pipe = split(graph, loss);
    cuts += pipe.num_stages() - 1;
    const Tensors whole = random_program(net, inputs, seed);
    if (whole[0].requires_grad()) whole[0].backward();
    const at::Tensor x_grad = x.grad();
    std::map<std::string, at::Tensor> grads;
    bool in_place_at_a_border = false;
    for (const Stage& stage : pipe.stages)
      for (const graph::Node& node : stage.graph.nodes)
        in_place_at_a_border |= node.op->operator_name().name == "aten::clone";
    copies += in_place_at_a_border;
    for (const auto& item : net.named_parameters()) grads[item.key()] = std::move(item.value().mutable_grad());
    const auto same = [](const at::Tensor& got, const at::Tensor& expected, const std::string& what) {
      ASSERT_TRUE(got.defined() || !expected.defined()) << what;
      if (!got.defined()) return;
      EXPECT_TRUE(at::equal(got, expected.defined() ? expected : at::zeros_like(got))) << what;
      EXPECT_LT(got.abs().max().item<double>(), 1e15) << "no longer exact: " << what;
    };
    for (const Route route : {Route::Direct, Route::Chain, Route::Neighbours})
      for (const MultiUse multi_use : {MultiUse::Replicate, MultiUse::Transmit}) {
        SCOPED_TRACE("route " + std::to_string(int(route)) + ", multi use " + std::to_string(int(multi_use)));
        SplitOptions options = loss;
        options.route = route;
        options.multi_use = multi_use;
        const Pipe routed = split(graph, options);
        EXPECT_EQ(routed.num_stages(), pipe.num_stages());
        EXPECT_TRUE(multi_use == MultiUse::Replicate || routed.shared.empty());
        for (const Boundary& boundary : routed.boundaries) {
          EXPECT_TRUE(route == Route::Direct || boundary.consumers.size() == 1) << boundary.name;
          EXPECT_TRUE(route != Route::Neighbours || boundary.consumers[0].stage == boundary.producer + 1);
        }
        Outcome staged = run_stages(routed, inputs);
        for (size_t i = 0; i < whole.size(); ++i) EXPECT_TRUE(at::equal(staged.outputs[i], whole[i])) << "output " << i;
        same(staged.input_grads[0], x_grad, "gradient of x");
        for (const auto& [name, grad] : grads) same(staged.grads[name], grad, name);
      }
  }
  EXPECT_GT(cuts, 100);
  EXPECT_GT(refused, 5);
  EXPECT_GT(copies, 5) << "stages that change what they were sent";
}

/// Whether reshape() and its like return a view or a copy depends on strides, which a border changes. `body` gets a
/// value of stage 0 and the rest of the model is its own; each is run as it is, and cut before it.
void expect_writes_where_they_were(const std::string& what, const std::function<at::Tensor(const at::Tensor&)>& sent,
                                   const std::function<Tensors(const at::Tensor&)>& body) {
  for (const bool gradient : {true, false})
    for (const at::MemoryFormat layout : {at::MemoryFormat::Contiguous, at::MemoryFormat::Preserve}) {
      SCOPED_TRACE(what + (gradient ? ", with" : ", without") + " gradients, memory format " +
                   std::to_string(static_cast<int>(layout)));
      at::manual_seed(3);
      Net net([&](Net& n, const Tensors& in) {
        const at::Tensor h = sent(n.run(0, in[0]));
        capture::pipe_split();
        return body(h);
      });
      for (const at::Tensor& parameter : net.parameters()) parameter.requires_grad_(gradient);
      const at::Tensor x = at::randint(-2, 3, {4, 4}, at::kDouble).requires_grad_(gradient);
      const Pipe pipe = make_pipe(net.handle(), {x}, true, {});
      ASSERT_EQ(pipe.num_stages(), 2);
      const Tensors whole = net.handle().forward({x});
      if (gradient) whole[0].backward(at::ones_like(whole[0]));
      const Outcome staged = run_stages(pipe, {x}, layout);
      for (size_t i = 0; i < whole.size(); ++i) EXPECT_TRUE(at::equal(staged.outputs[i], whole[i])) << "output " << i;
      EXPECT_TRUE(!gradient || at::equal(staged.input_grads[0], x.grad()));
    }
}

TEST(SplitModules, AWriteIsSeenWhereItWasInTheCapturedRun) {
  using Values = std::function<at::Tensor(const at::Tensor&)>;
  const std::map<std::string, Values> sent = {
      {"turned", [](const at::Tensor& h) { return h.t(); }},
      {"columns", [](const at::Tensor& h) { return h.narrow(1, 1, 2); }},
      {"every second column", [](const at::Tensor& h) { return h.slice(1, 0, 4, 2); }},
      {"repeated", [](const at::Tensor& h) { return h.narrow(1, 0, 1).expand({4, 4}); }},
      {"as it is", [](const at::Tensor& h) { return h; }},
  };
  const std::map<std::string, Values> calls = {
      {"contiguous", [](const at::Tensor& h) { return h.contiguous(); }},
      {"reshape", [](const at::Tensor& h) { return h.reshape({2, -1}).view(h.sizes()); }},
      {"flatten", [](const at::Tensor& h) { return h.flatten().view(h.sizes()); }},
      {"flatten of a result", [](const at::Tensor& h) { return (h * 2).flatten().view(h.sizes()); }},
      {"twice", [](const at::Tensor& h) { return h.contiguous().reshape({-1}).view(h.sizes()); }},
  };
  for (const auto& [layout, make] : sent)
    for (const auto& [name, call] : calls) {
      // Where contiguous() returned a copy, the first line changes `y` alone; where it returned `h` itself, both.
      expect_writes_where_they_were(layout + ", " + name + ", its result is written", make, [&](const at::Tensor& h) {
        const at::Tensor y = call(h);
        y.add_(1);
        return Tensors{h + y * 10};
      });
      if (layout == "repeated") continue;  // LibTorch itself refuses a write into it
      expect_writes_where_they_were(layout + ", " + name + ", its argument is written", make, [&](const at::Tensor& h) {
        const at::Tensor own = h * 1, y = call(own);
        own.add_(1);
        return Tensors{own + y * 10};
      });
    }
}

/// With the layout of the captured run these are views; contiguous, LibTorch would have to copy.
TEST(SplitModules, AViewThatIsWrittenFailsWhereItWouldBeACopy) {
  const auto run = [](at::MemoryFormat layout, const std::function<Tensors(const at::Tensor&)>& body) {
    at::manual_seed(3);
    Net net([&](Net& n, const Tensors& in) {
      const at::Tensor h = n.run(0, in[0]).t();
      capture::pipe_split();
      return body(h);
    });
    const at::Tensor x = at::randint(-2, 3, {4, 4}, at::kDouble);
    const Pipe pipe = make_pipe(net.handle(), {x}, true, {});
    const Tensors whole = net.handle().forward({x});
    const Outcome staged = run_stages(pipe, {x}, layout);
    for (size_t i = 0; i < whole.size(); ++i) EXPECT_TRUE(at::equal(staged.outputs[i], whole[i])) << "output " << i;
  };
  const auto written_behind = [](const at::Tensor& h) {
    const at::Tensor y = h.t().reshape({-1});
    y.mul_(2);
    return Tensors{h + 0};
  };
  const auto written_in_front = [](const at::Tensor& h) {
    const at::Tensor y = h.t().flatten();
    h.mul_(2);
    return Tensors{y};
  };
  const auto seen_by_nobody = [](const at::Tensor& h) {
    const at::Tensor y = h.t().reshape({-1});
    y.mul_(2);
    return Tensors{y};
  };
  const auto itself = [](const at::Tensor& h) {
    const at::Tensor y = h.t().contiguous();
    y.mul_(2);
    return Tensors{h + 0};
  };
  for (const at::MemoryFormat layout : {at::MemoryFormat::Preserve, at::MemoryFormat::Contiguous}) {
    run(layout, seen_by_nobody);
    run(layout, itself);
  }
  for (const auto& body : {+written_behind, +written_in_front}) {
    run(at::MemoryFormat::Preserve, body);
    EXPECT_THROW(run(at::MemoryFormat::Contiguous, body), std::exception);
  }
}

TEST(MakePipe, LeavesTheModesOfTheUsersModules) {
  Net net([](Net& self, const Tensors& in) {
    EXPECT_EQ(self.is_training(), self.layers[1]->is_training());
    return Tensors{self.run(1, self.run(0, in[0]))};
  });
  const auto modes = [&] {
    std::vector<bool> all{net.is_training()};
    for (const auto& layer : net.layers) all.push_back(layer->is_training());
    return all;
  };
  const at::Tensor x = at::ones({2, 4}, at::kDouble);
  net.layers[1]->eval();  // a user may keep one layer in evaluation mode
  const std::vector<bool> before = modes();
  for (const bool training : {false, true, false}) {
    make_pipe(net.handle(), {x}, training, {});
    EXPECT_EQ(modes(), before) << training;
  }
  net.eval();
  EXPECT_THROW(make_pipe(net.handle(), {x}, true, {.loss_outputs = std::vector<int>{7}}), InputError);
  EXPECT_EQ(modes(), std::vector<bool>(5, false)) << "after a refusal";
}

/// What a step changes is values and gradients; a split changes nothing.
TEST(MakePipe, LeavesTheUsersTensorsAndTheirHooks) {
  Net net([](Net& self, const Tensors& in) {
    const at::Tensor h = self.run(0, in[0]);
    if (self.is_training()) self.layers[0]->count.add_(1);
    return Tensors{self.run(1, h)};
  });
  net.layers[1]->b.set_requires_grad(false);
  net.layers[0]->w.mutable_grad() = at::ones({4, 4}, at::kDouble);
  int calls = 0;
  net.layers[0]->w.register_hook([&](const at::Tensor&) { ++calls; });
  const auto facts = [&] {
    std::vector<std::tuple<std::string, const void*, bool, size_t>> all;
    for (const auto& item : net.named_parameters())
      all.emplace_back(item.key(), item.value().unsafeGetTensorImpl(), item.value().requires_grad(),
                       item.value().requires_grad() ? torch::autograd::impl::hooks(item.value()).size() : 0);
    for (const auto& item : net.named_buffers())
      all.emplace_back(item.key(), item.value().unsafeGetTensorImpl(), item.value().requires_grad(), 0);
    return all;
  };
  const auto values = [&] {
    Tensors all;
    for (const auto& list : {net.named_parameters(), net.named_buffers()})
      for (const auto& item : list) all.push_back(item.value().detach().clone());
    return all;
  };
  const auto names = facts();
  const Tensors before = values();
  const at::Tensor x = at::ones({2, 4}, at::kDouble);
  for (const bool training : {true, false, true}) {
    const Pipe pipe = make_pipe(net.handle(), {x}, training, {});
    const StageState state = make_stage_state(pipe, 0);
    EXPECT_EQ(facts(), names) << training;
    const Tensors after = values();
    for (size_t i = 0; i < before.size(); ++i) EXPECT_TRUE(at::equal(after[i], before[i])) << std::get<0>(names[i]);
    EXPECT_TRUE(at::equal(net.layers[0]->w.grad(), at::ones({4, 4}, at::kDouble)));
    EXPECT_EQ(state.parameters.size(), 8u);
  }
  EXPECT_EQ(calls, 0);
}

}  // namespace
}  // namespace plumbline::split
