#include "runtime/graph/run/program.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <atomic>
#include <random>
#include <thread>

#include "runtime/error.h"
#include "runtime/graph/testing/parse.h"
#include "runtime/testing/counted_memory.h"
#include "runtime/testing/leaf.h"
#include "runtime/testing/refusal.h"

namespace plumbline::graph {
namespace {

using testing::leaf;

using Tensors = std::vector<at::Tensor>;

/// Parses, binds the attributes in order, and checks inputs into a frame that is ready to run.
Frame frame_of(const std::string& text, const Tensors& attributes = {}) {
  Graph graph = parse_graph(text);
  for (size_t i = 0; i < attributes.size(); ++i) graph.attributes.at(i).tensor = attributes[i];
  return Frame(Program(graph));
}

Tensors run(Frame& frame, const Tensors& inputs) {
  Tensors outputs;
  frame.run(inputs, outputs);
  return outputs;
}

at::Tensor leaf_copy(const at::Tensor& t) { return t.detach().clone().requires_grad_(true); }

TEST(Program, EqualsDirectCallsForwardAndBackward) {
  at::manual_seed(2);
  const at::Tensor x = leaf({4, 8}), w = leaf({8, 8}), b = leaf({8});
  Frame frame = frame_of(R"(input %0: f32[4,8]* = "x"
parameter %1: f32[8,8]* = "w"
parameter %2: f32[8]* = "b"
%3: f32[4,8]* = aten::linear(%0, %1, %2)
%4: f32[4,8]* = aten::gelu(%3, "none")
[%5: f32[4,4]*, %6: f32[4,4]*] = aten::split.Tensor(%4, 4, 1)
%7: f32[4,8]* = aten::cat([%6, %5], 1)
%8: f32[4,8]* = aten::layer_norm(%7, [8], %2, None, 1e-05, False)
%9: f32[4,8]* = aten::mul.Tensor(%8, %8)
pipe_split
%10: f32[4,8]* = aten::add_.Tensor(%9, %0, 2)
%11: f32[]* = aten::sum(%10, None)
return %11, %10, %5
)",
                         {w, b});
  const at::Tensor x2 = leaf_copy(x), w2 = leaf_copy(w), b2 = leaf_copy(b);
  for (int repeat = 0; repeat < 2; ++repeat) {  // the second time: gradients accumulate in both
    const Tensors outputs = run(frame, {x});
    outputs[0].backward();
    const Tensors parts = at::split(at::gelu(at::linear(x2, w2, b2)), 4, 1);
    const at::Tensor n = at::layer_norm(at::cat({parts[1], parts[0]}, 1), {8}, b2, {}, 1e-05, false);
    const at::Tensor y = (n * n).add_(x2, 2), loss = y.sum();
    loss.backward();
    EXPECT_TRUE(at::equal(outputs[0], loss));
    EXPECT_TRUE(at::equal(outputs[1], y));
    EXPECT_TRUE(at::equal(outputs[2], parts[0]));
    EXPECT_TRUE(at::equal(x.grad(), x2.grad()));
    EXPECT_TRUE(at::equal(w.grad(), w2.grad()));
    EXPECT_TRUE(at::equal(b.grad(), b2.grad()));
  }
}

TEST(Program, GradModeIsThatOfTheNodeAndOfTheCaller) {
  const at::Tensor x = leaf({3});
  Frame frame = frame_of(R"(input %0: f32[3]* = "x"
%1: f32[3]* = aten::relu(%0)
%2: f32[3] = aten::neg(%0) no_grad
%3: f32[3]* = aten::add.Tensor(%1, %2, 1)
%4: f32[3] = aten::neg(%3) no_grad
return %1, %2, %3, %4
)");
  Tensors outputs = run(frame, {x});
  EXPECT_TRUE(c10::GradMode::is_enabled());
  EXPECT_TRUE(outputs[0].requires_grad());
  EXPECT_FALSE(outputs[1].requires_grad());
  EXPECT_TRUE(outputs[2].requires_grad());
  EXPECT_FALSE(outputs[3].requires_grad());
  outputs[2].sum().backward();
  EXPECT_TRUE(at::equal(x.grad(), (x > 0).to(at::kFloat)));
  {
    const at::NoGradGuard no_grad;
    for (const at::Tensor& output : run(frame, {x})) EXPECT_FALSE(output.requires_grad());
    EXPECT_FALSE(c10::GradMode::is_enabled());
  }
  EXPECT_TRUE(run(frame, {x})[0].requires_grad());
  // An error inside a no_grad node gives the caller's mode back too.
  Frame failing = frame_of("input %0: f32[3] = \"x\"\n%1: f32[] = aten::mm(%0, %0) no_grad\nreturn %1\n");
  EXPECT_THROW(run(failing, {x}), Error);
  EXPECT_TRUE(c10::GradMode::is_enabled());
}

TEST(Program, ValuesAreReleasedAtTheirLastUse) {
  constexpr int64_t kBytes = 4 * 1024;
  struct Case {
    std::string name, body;
    int64_t peak;  // blocks of 1024 floats live at once, without the input and attributes
  };
  std::string chain;
  for (int i = 0; i < 10; ++i)
    chain += "%" + std::to_string(i + 1) + ": f32[1024] = aten::neg(%" + std::to_string(i) + ")\n";
  const Case cases[] = {
      {"chain", chain + "return %10\n", 2},
      {"used twice in one call",
       "%1: f32[] = aten::neg(%0)\n%2: f32[] = aten::add.Tensor(%1, %1, 1)\n"
       "%3: f32[] = aten::neg(%2)\nreturn %3\n",
       2},
      {"last use in a list",
       "%1: f32[] = aten::neg(%0)\n%2: f32[] = aten::neg(%0)\n%3: f32[] = aten::cat([%1, %2], 0)\n"
       "%4: f32[] = aten::slice.Tensor(%3, 0, 0, 1, 1)\n%5: f32[] = aten::neg(%4)\n"
       "%6: f32[] = aten::neg(%0)\nreturn %6\n",
       4},
      {"never used", "%1: f32[] = aten::neg(%0)\n%2: f32[] = aten::neg(%0)\n%3: f32[] = aten::neg(%0)\nreturn %3\n", 1},
      {"never used, in a list",
       "[%1: f32[], %2: f32[]] = aten::unsafe_chunk(%0, 2, 0)\n[%3: f32[]] = "
       "aten::meshgrid([%0])\n%4: f32[] = aten::neg(%0)\nreturn %4\n",
       1},
      {"output", "%1: f32[] = aten::neg(%0)\n%2: f32[] = aten::neg(%1)\n%3: f32[] = aten::neg(%2)\nreturn %1, %3\n", 3},
  };
  const at::Tensor x = at::randn({1024});
  for (const Case& c : cases) {
    Frame frame = frame_of("input %0: f32[1024] = \"x\"\n" + c.body);
    const testing::CountedMemory counted;
    for (int repeat = 0; repeat < 2; ++repeat) {
      testing::CountedMemory::peak = 0;
      {
        const Tensors outputs = run(frame, {x});
      }
      EXPECT_EQ(testing::CountedMemory::peak / kBytes, c.peak) << c.name;
      EXPECT_EQ(testing::CountedMemory::live, 0) << c.name << ": the frame kept something after the run";
    }
  }
}

TEST(Program, AttributesAndOutputsSurviveRepeatedRuns) {
  const at::Tensor w = at::ones({2}), counter = at::zeros({2});
  Frame frame = frame_of(R"(input %0: f32[2] = "x"
parameter %1: f32[2] = "w"
buffer %2: f32[2] = "counter"
%3: f32[2] = aten::add_.Scalar(%2, 1, 1)
%4: f32[2] = aten::mul.Tensor(%0, %1)
%5: f32[2] = aten::add.Tensor(%4, %3, 1)
return %4, %5, %1, %4, None, %0
)",
                         {w, counter});
  std::vector<Tensors> all;
  for (int i = 0; i < 3; ++i) all.push_back(run(frame, {at::full({2}, i)}));
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(all[i].size(), 6u);
    EXPECT_TRUE(at::equal(all[i][0], at::full({2}, static_cast<float>(i))));
    EXPECT_TRUE(at::equal(all[i][1], at::full({2}, static_cast<float>(2 * i + 1))));
    EXPECT_TRUE(all[i][2].is_same(w));
    EXPECT_TRUE(all[i][3].is_same(all[i][0]));
    EXPECT_FALSE(all[i][4].defined());
    EXPECT_TRUE(at::equal(all[i][5], at::full({2}, i)));
  }
  EXPECT_TRUE(at::equal(counter, at::full({2}, 3.0F)));
  const at::Tensor x = at::ones({2});
  EXPECT_TRUE(run(frame, {x})[5].is_same(x));
  // The vectors may be one and the same.
  Tensors both{x};
  frame.run(both, both);
  EXPECT_EQ(both.size(), 6u);
}

TEST(Program, AnInputThatIsNoNumberLeavesNothingInTheFrame) {
  Frame frame = frame_of(R"(input %0: f32[4] = "x"
input %1: int = "n"
%2: f32[4] = aten::mul.Scalar(%0, %1)
return %2
)");
  at::Tensor x = at::ones({4});
  EXPECT_THROW(run(frame, {x, at::ones({3}, at::kLong)}), c10::Error);
  EXPECT_EQ(x.use_count(), 1u);
  EXPECT_TRUE(at::equal(run(frame, {x, at::full({}, 3, at::kLong)})[0], x * 3));
}

TEST(Program, WithoutRandomStatesReplayedCallsDrawAsUsual) {
  const Graph graph = parse_graph("input %0: f32[64] = \"x\"\n%1: f32[64] = aten::dropout(%0, 0.5, True)\nreturn %1\n");
  Frame frame(Program(graph, {.replayed = {{.node = 0, .state = 0, .device = c10::kCPU}}, .states = 1}));
  const at::Tensor x = at::ones({64});
  for (const RandomStates::Mode mode : {RandomStates::Mode::Record, RandomStates::Mode::Replay}) {
    Tensors inputs{x}, outputs;
    at::manual_seed(4);
    frame.run(std::move(inputs), outputs, RandomStates{.mode = mode});
    at::manual_seed(4);
    EXPECT_TRUE(at::equal(outputs.at(0), at::dropout(x, 0.5, true)));
  }
}

TEST(Program, ErrorsCarryTheNodeAndLeaveItUsable) {
  Frame frame = frame_of(R"(input %0: f32[4,4] = "x"
parameter %1: f32[4,4] = "w"
%2: f32[4,4] = aten::neg(%0)
%3: f32[4,4] = aten::mm(%2, %1)
[%4: f32[2,4], %5: f32[2,4]] = aten::split.Tensor(%3, 2, 0)
return %3, %5
)",
                         {at::eye(4)});
  const at::Tensor x = at::randn({4, 4});
  const Tensors first = run(frame, {x});
  const auto error_of = [&](const at::Tensor& bad) { return testing::failure([&] { run(frame, {bad}); }); };
  std::string what = error_of(at::randn({4, 3}));
  EXPECT_NE(what.find("running %3: f32[4,4] = aten::mm(%2, %1): "), std::string::npos) << what;
  EXPECT_NE(what.find("4x3 and 4x4"), std::string::npos) << what;
  EXPECT_EQ(what.find("frame #"), std::string::npos) << what;
  what = error_of(at::randn({6, 4}));
  EXPECT_NE(what.find("aten::split.Tensor(%3, 2, 0): returned a list of 3 tensors; at capture it had 2"),
            std::string::npos)
      << what;
  at::Tensor large = at::randn({6, 4});
  error_of(large);
  EXPECT_EQ(large.use_count(), 1u) << "a failed run keeps its input";
  EXPECT_TRUE(at::equal(run(frame, {x})[1], first[1]));
}

TEST(Program, ThreadsShareItWithFramesOfTheirOwn) {
  Graph graph = parse_graph(R"(input %0: f32[16,16] = "x"
parameter %1: f32[16,16] = "w"
%2: f32[16,16] = aten::mm(%0, %1)
%3: f32[16,16] = aten::tanh(%2)
[%4: f32[8,16], %5: f32[8,16]] = aten::split.Tensor(%3, 8, 0)
%6: f32[16,16] = aten::cat([%5, %4], 0)
return %6
)");
  graph.attributes[0].tensor = at::randn({16, 16});
  const Program program(graph);
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, x = at::randn({16, 16})] {
      const c10::NoGradGuard no_grad;
      const Tensors halves = at::mm(x, graph.attributes[0].tensor).tanh().split(8);
      const at::Tensor expected = at::cat({halves[1], halves[0]});
      Frame kept(program);
      for (int i = 0; i < 200; ++i) {
        Tensors of_kept, of_new;
        kept.run(Tensors{x}, of_kept);
        program.run(Tensors{x}, of_new);
        wrong += !at::equal(of_kept[0], expected) || !at::equal(of_new[0], expected);
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

// A random program on [4,4] tensors: written as graph text, and run at once by direct calls.
struct RandomProgram {
  struct Named {
    int id;
    at::Tensor tensor;
  };

  explicit RandomProgram(uint64_t program_seed) : seed(program_seed), engine(program_seed) {
    at::manual_seed(seed);
    text = "input %0: f32[4,4]* = \"x\"\ninput %1: f32[4,4] = \"y\"\nparameter %2: f32[4,4]* = \"w\"\n";
    for (const bool requires_grad : {true, false, true}) {
      leaves.push_back(at::randn({4, 4}).requires_grad_(requires_grad));
      values.push_back({next_id++, leaves.back()});
    }
    at::manual_seed(seed);
    for (int count = 8 + pick(12); count > 0; --count) step();
    text += "return";
    for (int i = 0; i < 3; ++i) {
      outputs.push_back(values[values.size() - 1 - static_cast<size_t>(pick(5))]);
      text += (i ? ", %" : " %") + std::to_string(outputs.back().id);
    }
  }

  int pick(int n) { return static_cast<int>(engine() % static_cast<uint64_t>(n)); }

  std::string define(const at::Tensor& tensor) {
    values.push_back({next_id++, tensor});
    return "%" + std::to_string(values.back().id) + ": f32[4,4]";
  }

  void step() {
    const Named a = values[pick(static_cast<int>(values.size()))], b = values[pick(static_cast<int>(values.size()))];
    const at::Tensor x = a.tensor, y = b.tensor;
    const std::string in = "%" + std::to_string(a.id), both = in + ", %" + std::to_string(b.id);
    const bool grad = pick(8) != 0;
    const at::AutoGradMode mode(grad);
    const std::string end = grad ? ")\n" : ") no_grad\n";
    switch (pick(9)) {
      case 0:
        text += define(x.tanh()) + " = aten::tanh(" + in + end;
        return;
      case 1:
        text += define(x.softmax(-1)) + " = aten::softmax.int(" + in + ", -1, None" + end;
        return;
      case 2:
        text += define(x.t()) + " = aten::t(" + in + end;
        return;
      case 3:
        text += define(at::add(x, y, 0.5)) + " = aten::add.Tensor(" + both + ", 0.5" + end;
        return;
      case 4:
        text += define(x * y) + " = aten::mul.Tensor(" + both + end;
        return;
      case 5:
        text += define(at::matmul(x, y)) + " = aten::matmul(" + both + end;
        return;
      case 6:
        text += define(at::dropout(x, 0.25, true)) + " = aten::dropout(" + in + ", 0.25, True" + end;
        return;
      case 7: {  // in place, on a fresh value
        const std::string fresh = "%" + std::to_string(next_id++);
        text += fresh + ": f32[4,4] = aten::sin(" + in + end;
        text +=
            define(x.sin().add_(y, 2)) + " = aten::add_.Tensor(" + fresh + ", %" + std::to_string(b.id) + ", 2" + end;
        return;
      }
      default: {
        const int dim = pick(2);
        const Tensors parts = at::split(x, 2, dim);
        const std::string first = "%" + std::to_string(next_id++), second = "%" + std::to_string(next_id++);
        text += "[" + first + ": f32[2,4], " + second + ": f32[2,4]] = aten::split.Tensor(" + in + ", 2, " +
                std::to_string(dim) + end;
        text += define(at::cat({parts[1], parts[0]}, dim)) + " = aten::cat([" + second + ", " + first + "], " +
                std::to_string(dim) + end;
      }
    }
  }

  uint64_t seed;
  std::mt19937_64 engine;
  std::string text;
  int next_id = 0;
  Tensors leaves;
  std::vector<Named> values, outputs;
};

TEST(Program, NodesThatDrawAreThoseThatAdvanceTheGenerator) {
  const at::Generator& generator = at::detail::getDefaultCPUGenerator();
  for (const char* call :
       {"%1: f32[64] = aten::bernoulli.p(%0, 0.0, None)", "%1: f32[64] = aten::bernoulli.p(%0, 0.5, None)",
        "%1: f32[64] = aten::bernoulli_.float(%0, 0.0, None)",
        "%1: f32[64], %2: bool[64] = aten::native_dropout(%0, 0.0, True)",
        "%1: f32[64], %2: bool[64] = aten::native_dropout(%0, 0.5, False)",
        "%1: f32[64] = aten::dropout(%0, 0.0, True)", "%1: f32[64] = aten::dropout_(%0, 0.0, True)",
        "%1: f32[64] = aten::feature_dropout(%0, 0.0, True)", "%1: f32[64] = aten::alpha_dropout(%0, 0.0, True)",
        "%1: f32[64] = aten::dropout(%0, 0.5, True)", "%1: f32[64] = aten::dropout(%0, 0.5, False)"}) {
    const std::string text = "input %0: f32[64] = \"x\"\n" + std::string(call) + "\nreturn %1\n";
    Frame frame = frame_of(text);
    const at::Tensor before = generator.get_state();
    run(frame, {at::ones({64})});
    EXPECT_EQ(draws_random_numbers(parse_graph(text).nodes[0]), !at::equal(generator.get_state(), before)) << call;
  }
}

TEST(Program, ABranchThatDrawsMakesItsNodeDraw) {
  const auto drawing = [](const std::string& then, const std::string& otherwise) {
    const auto branch = [](const std::string& call) {
      return " {\n  input %0: f32[64] = \"a\"\n  %1: f32[64] = " + call + "\n  return %1\n}\n";
    };
    const Graph graph = parse_graph("input %0: f32[64] = \"x\"\ninput %1: bool[] = \"c\"\n" +
                                    std::string("[%2: f32[64]] = plumbline::cond(%1, [%0])\nthen") + branch(then) +
                                    "else" + branch(otherwise) + "return %2\n");
    return draws_random_numbers(graph.nodes[0]);
  };
  const std::string plain = "aten::neg(%0)", drop = "aten::dropout(%0, 0.5, True)";
  EXPECT_FALSE(drawing(plain, plain));
  EXPECT_TRUE(drawing(drop, plain));
  EXPECT_TRUE(drawing(plain, drop));
}

TEST(Program, RandomProgramsEqualDirectCalls) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    RandomProgram program(seed);
    SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + program.text);
    const at::Tensor x = leaf_copy(program.leaves[0]), y = program.leaves[1], w = leaf_copy(program.leaves[2]);
    Frame frame = frame_of(program.text, {w});
    at::manual_seed(seed);
    const Tensors outputs = run(frame, {x, y});
    Tensors roots, expected_roots, weights;
    for (size_t i = 0; i < outputs.size(); ++i) {
      const at::Tensor& expected = program.outputs[i].tensor;
      ASSERT_TRUE(at::equal(outputs[i], expected)) << "output " << i;
      ASSERT_EQ(outputs[i].requires_grad(), expected.requires_grad()) << "output " << i;
      // A view made without gradients says that it requires one, and has none.
      if (!expected.requires_grad() || (expected.is_view() && !expected.grad_fn())) continue;
      roots.push_back(outputs[i]);
      expected_roots.push_back(expected);
      weights.push_back(at::randn({4, 4}));
    }
    if (roots.empty()) continue;
    torch::autograd::backward(roots, weights);
    torch::autograd::backward(expected_roots, weights);
    for (const auto& [ours, theirs] : {std::pair(x, program.leaves[0]), std::pair(w, program.leaves[2])}) {
      ASSERT_EQ(ours.grad().defined(), theirs.grad().defined());
      if (ours.grad().defined()) {
        ASSERT_TRUE(at::equal(ours.grad(), theirs.grad()));
      }
    }
  }
}

}  // namespace
}  // namespace plumbline::graph
