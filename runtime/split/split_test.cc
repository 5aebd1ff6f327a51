#include "runtime/split/split.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "runtime/error.h"
#include "runtime/graph/run/program.h"
#include "runtime/graph/testing/parse.h"
#include "runtime/testing/refusal.h"

namespace plumbline::split {
namespace {

using Where = SplitPoint::Where;

/// A chain of calls, one letter each (r relu, n neg, s sin, c cos), where '|' is a marker.
graph::Graph chain(const std::string& program, const std::vector<graph::ModuleCall>& modules = {}) {
  const std::map<char, std::string> ops = {{'r', "relu"}, {'n', "neg"}, {'s', "sin"}, {'c', "cos"}};
  std::string text = "input %0: f32[2] = \"x\"\n";
  int value = 0;
  for (char letter : program) {
    const std::string from = "(%" + std::to_string(value) + ")\n";
    text +=
        letter == '|' ? "pipe_split\n" : "%" + std::to_string(++value) + ": f32[2] = aten::" + ops.at(letter) + from;
  }
  graph::Graph graph = graph::parse_graph(text + "return %" + std::to_string(value) + "\n");
  graph.module_calls = modules;
  return graph;
}

/// The inverse: letters of each stage's calls, with '|' between stages.
std::string letters(const Pipe& pipe) {
  std::string text;
  for (const Stage& stage : pipe.stages) {
    if (&stage != &pipe.stages[0]) text += "|";
    for (const graph::Node& node : stage.graph.nodes) text += node.op->operator_name().name.at(6);
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
  const std::vector<graph::ModuleCall> modules = {{"a", "A", 0, 2}, {"a.in", "B", 1, 2},  {"b", "A", 2, 3},
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
  EXPECT_EQ(testing::refusal([&] { cut({{"a"}, {"a.i"}}); }),
            "split: no module named 'a.i' was entered; there is no 'a.i'; in 'a' were entered: a.in");
  testing::expect_part(testing::refusal([] { split(chain("r"), {{{"a"}}, {}}); }),
                       "enters none through plumbline::call()");
  const Pipe pipe = split(chain("rnscr", modules), {{{"a.in"}, {"b", Where::End}}, {}});
  std::string calls;
  for (const Stage& stage : pipe.stages) {
    for (const graph::ModuleCall& m : stage.graph.module_calls)
      calls += m.name + std::to_string(m.begin) + std::to_string(m.end) + " ";
    calls += "| ";
  }
  EXPECT_EQ(calls, "a01 all01 | a01 a.in01 b12 all02 | a01 all02 | ");
}

/// A complete forward has all attributes, also those that it does not read; one that returned early only those it read.
TEST(Split, ReturnsEarlyIfAPointHasNothingBehindIt) {
  const auto returned = [](const std::string& program, const std::vector<graph::ModuleCall>& modules,
                           const std::vector<SplitPoint>& points) {
    graph::Graph graph = chain(program, modules);
    graph::Attribute& unread = graph.attributes.emplace_back();
    unread.name = "unread";
    unread.tensor = at::ones({1});
    const Pipe pipe = split(graph, {.points = points, .exits_early = true});
    const bool has_all = std::ranges::any_of(pipe.stages, [](const Stage& s) { return !s.graph.attributes.empty(); });
    EXPECT_NE(has_all, pipe.ends_early) << program;
    return pipe.ends_early;
  };
  const std::vector<graph::ModuleCall> three = {{"a", "A", 0, 1}, {"b", "B", 1, 2}, {"c", "C", 2, 4}};
  EXPECT_FALSE(returned("rnsc", three, {{"b"}, {"c"}}));
  EXPECT_FALSE(returned("rnsc", three, {{"a", Where::End}, {"b"}, {"c"}})) << "two points at one place";
  EXPECT_FALSE(returned("rnsc", three, {{"a"}, {"b"}, {"c"}})) << "a point where nothing is before it";
  EXPECT_TRUE(returned("rn", {{"a", "A", 0, 1}, {"b", "B", 1, 2}}, {{"b"}, {"c"}}));
  EXPECT_TRUE(returned("rn", {{"a", "A", 0, 1}, {"b", "B", 1, 2}}, {{"b"}, {"b", Where::End}}));
  EXPECT_TRUE(returned("rns", {{"a", "A", 0, 1}, {"a", "A", 1, 2}, {"a", "A", 2, 3}}, {{"a"}, {"c"}}))
      << "one module makes as many stages as two points";
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
    testing::expect_part(testing::refusal([&] { choose_split_points(names, stages); }),
                         "7 split points, which allow 1 to 8 stages");
}

TEST(Split, AValueGoesStraightToEveryStageThatUsesIt) {
  const Pipe pipe = split(graph::parse_graph(R"(input %0: f32[2]* = "x"
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
  EXPECT_EQ(boundary_text(pipe),
            "x:0.0>3.0,g index:0.1>3.1, relu:0.2>1.0,2.0,3.2,g neg#2:1.0>2.1,3.3,g add:2.0>3.4,g ");
  EXPECT_EQ(pipe.stages[0].graph.inputs.size(), 3u);
  EXPECT_EQ(pipe.stages[0].inputs.size(), 0u);
  EXPECT_EQ(pipe.stages[3].outputs.size(), 0u);
  EXPECT_EQ(pipe.boundaries[1].value.dtype, at::kLong);
  EXPECT_EQ(pipe.boundaries[1].value.sizes, std::vector<int64_t>{2});
  const graph::Graph& last = pipe.stages[3].graph;
  ASSERT_EQ(last.outputs.size(), 6u);
  EXPECT_EQ(last.outputs[2], graph::kNoValue);
  EXPECT_EQ(last.outputs[0], last.outputs[5]);
  EXPECT_EQ(last.outputs[3], last.inputs[0].value);
  for (size_t i = 0; i < last.inputs.size(); ++i)
    EXPECT_EQ(last.inputs[i].name, pipe.boundaries[pipe.stages[3].inputs[i]].name);
}

TEST(Split, AValueHopsFromUserToUserOrFromNeighbourToNeighbour) {
  const graph::Graph graph = graph::parse_graph(R"(input %0: f32[2]* = "x"
parameter %1: f32[2]* = "w" also "tied"
%2: f32[2]* = aten::mul.Tensor(%0, %1)
pipe_split
%3: f32[2]* = aten::neg(%2)
pipe_split
%4: f32[2]* = aten::relu(%3)
pipe_split
%5: f32[2]* = aten::mul.Tensor(%4, %1)
%6: f32[2]* = aten::add.Tensor(%5, %2, 1)
return %6
)");
  const auto boundaries = [&](Route route, MultiUse multi_use, std::map<std::string, MultiUse> by_name = {}) {
    SplitOptions options;
    options.route = route;
    options.multi_use = multi_use;
    options.multi_use_of = std::move(by_name);
    const Pipe pipe = split(graph, options);
    return boundary_text(pipe) + std::to_string(pipe.shared.size());
  };
  const std::string rest = "neg:1.0>2.0,g relu:2.0>3.1,g ";
  EXPECT_EQ(boundaries(Route::Direct, MultiUse::Replicate), "mul:0.0>1.0,3.0,g " + rest + "1");
  EXPECT_EQ(boundaries(Route::Chain, MultiUse::Replicate),
            "mul:0.0>1.0,g mul:1.0>3.0,g neg:1.1>2.0,g relu:2.0>3.1,g 1");
  EXPECT_EQ(boundaries(Route::Neighbours, MultiUse::Replicate),
            "mul:0.0>1.0,g mul:1.0>2.0,g mul:2.0>3.0,g neg:1.1>2.1,g relu:2.1>3.1,g 1");
  EXPECT_EQ(boundaries(Route::Direct, MultiUse::Transmit),
            "w:0.0>3.0,g mul:0.1>1.0,3.1,g neg:1.0>2.0,g relu:2.0>3.2,g 0");
  const std::string transmitted = boundaries(Route::Direct, MultiUse::Transmit);
  EXPECT_EQ(boundaries(Route::Direct, MultiUse::Replicate, {{"tied", MultiUse::Transmit}}), transmitted);
  EXPECT_EQ(boundaries(Route::Direct, MultiUse::Transmit, {{"w", MultiUse::Replicate}}),
            boundaries(Route::Direct, MultiUse::Replicate));
  testing::expect_part(
      testing::refusal([&] { boundaries(Route::Direct, MultiUse::Transmit, {{"u", MultiUse::Replicate}}); }),
      "there is no parameter 'u' to transmit or replicate");
}

TEST(Split, NumbersCrossAsTensorsWithoutDimensions) {
  const Pipe pipe = split(graph::parse_graph(R"(input %0: f32[6] = "x"
%1: f32[] = aten::sum(%0, None)
%2: int = aten::sym_size.int(%0, 0)
%3: float = aten::item(%1)
pipe_split
%5: f32[6] = aten::full([%2], %3, None, None, None, None)
%6: f32[6] = aten::add.Tensor(%5, %0, 1)
pipe_split
%7: f32[6,1] = aten::view(%6, [%2, 1])
return %7, %2
)"));
  ASSERT_EQ(pipe.num_stages(), 3);
  std::vector<std::vector<at::Tensor>> outputs(3);
  const at::Tensor x = at::arange(6, at::kFloat);
  for (int s = 0; s < 3; ++s) {
    std::vector<at::Tensor> inputs;
    if (s == 0) inputs.push_back(x);
    for (int b : pipe.stages[s].inputs) {
      const Boundary& boundary = pipe.boundaries[b];
      inputs.push_back(outputs[boundary.producer][boundary.output]);
      EXPECT_EQ(inputs.back().scalar_type(), boundary.value.dtype) << boundary.name;
      EXPECT_EQ(inputs.back().sizes(), boundary.value.sizes) << boundary.name;
    }
    graph::Program(pipe.stages[s].graph).run(inputs, outputs[s]);
  }
  EXPECT_TRUE(at::equal(outputs[2][0], (x + 15).view({6, 1})));
  EXPECT_EQ(outputs[2][1].item<int64_t>(), 6) << "a number is an output like any";
}

TEST(Split, APolicyCutsWhereItSays) {
  const auto cut = [](std::vector<int32_t> nodes, std::vector<SplitPoint> points = {}) {
    SplitOptions options;
    options.points = std::move(points);
    options.policy = [&](const graph::Graph& graph) {
      EXPECT_EQ(graph.nodes.size(), 5u);
      return nodes;
    };
    return letters(split(chain("rn|sc", {{"a", "A", 0, 1}}), options));
  };
  EXPECT_EQ(cut({1}), "r|n|sc") << "markers hold as well";
  EXPECT_EQ(cut({}), "rn|sc");
  EXPECT_EQ(cut({0, 2, 3, 5}), "rn|sc") << "no stage is empty";
  testing::expect_part(testing::refusal([&] { cut({6}); }),
                       "wants a stage to begin at node 6, but the graph has nodes 0 to 5");
  testing::expect_part(testing::refusal([&] { cut({1}, {{"a"}}); }), "both split points and a split policy are given");
}

TEST(Split, OnlyWhatTheLossDependsOnHasAGradient) {
  const graph::Graph graph = graph::parse_graph(R"(input %0: f32[2]* = "x"
%1: f32[2]* = aten::relu(%0)
%2: f32[2]* = aten::neg(%0)
%3: f32[2]* = aten::sin(%0)
%4: f32[2]* = aten::cos(%0)
pipe_split
%5: f32[2] = aten::detach(%1)
%6: f32[2] = aten::neg(%2) no_grad
%7: f32[2]* = aten::add.Tensor(%3, %5, 1)
%10: f32[2]* = aten::add_.Tensor(%7, %4, 1) no_grad
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
  EXPECT_EQ(gradients(std::nullopt), "sincos");
  EXPECT_EQ(gradients(std::vector{0}), "sin");
  EXPECT_EQ(gradients(std::vector{1}), "cos");
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
  EXPECT_EQ(split(graph::parse_graph(text + "return %4\n")).num_stages(), 2) << "relu_ does not write the buffer";
  const auto refusal_of_neg = [&](const std::string& value, const std::string& rest) {
    return testing::refusal(
        [&] { split(graph::parse_graph(text + "%5: f32[2] = aten::neg_(" + value + ")\n" + rest)); });
  };
  EXPECT_EQ(refusal_of_neg("%3", "return %5\n"), "accepted") << "stage 1 takes a copy";
  testing::expect_part(
      refusal_of_neg("%3", "pipe_split\n%6: f32[2] = aten::cos(%3)\nreturn %6\n"),
      "aten::neg_ in stage 1 changes in place the memory of %3 f32[2], which stage 0 made and stage 2 reads");
  testing::expect_part(refusal_of_neg("%1", "return %5\n"), "writes the memory of 'mask', which stage 0 uses as well");
}

/// On one rank it is the tensor of the stage that made it.
TEST(Split, AStageThatWritesWhatItReceivesWritesACopy) {
  for (const std::string gradient : {"", "*"}) {
    const Pipe pipe = split(graph::parse_graph(R"(input %0: f32[2] = "x"
%1: f32[2])" + gradient + R"( = aten::relu(%0)
pipe_split
%2: f32[2])" + gradient + R"( = aten::neg_(%1)
return %2
)"));
    const at::Tensor given = at::full({2}, 3.0);
    std::vector<at::Tensor> outputs;
    graph::Program(pipe.stages[1].graph).run(std::vector{given}, outputs);
    EXPECT_TRUE(at::equal(given, at::full({2}, 3.0))) << gradient;
    EXPECT_TRUE(at::equal(outputs[0], at::full({2}, -3.0))) << gradient;
  }
}

/// Three stages; the scalars %3 and %6 of stages 0 and 2 are the second and third output.
const std::string kWithLosses = R"(input %0: f32[2] = "x"
%1: f32[2]* = aten::relu(%0)
%3: f32[]* = aten::sum(%1, None)
pipe_split
%4: f32[2]* = aten::neg(%1)
pipe_split
%5: f32[2]* = aten::sin(%4)
%6: f32[]* = aten::sum(%5, None)
return %5, %3, %6
)";

TEST(Split, ALocalLossStaysInItsStage) {
  const graph::Graph graph = graph::parse_graph(kWithLosses);
  const Pipe sent = split(graph, {.loss_outputs = std::vector<int>{0}});
  EXPECT_EQ(sent.boundaries.size(), 3u) << "the scalar of stage 0 travels to the last stage";
  const Pipe kept = split(graph, {.loss_outputs = std::vector<int>{0}, .local_losses = {1, 2}});
  ASSERT_EQ(kept.boundaries.size(), 2u);
  ASSERT_EQ(kept.local_losses.size(), 2u);
  const auto [stage, output, model_output] = kept.local_losses[0];
  EXPECT_EQ(std::tuple(stage, output, model_output), std::tuple(0, 1, 1));
  EXPECT_EQ(kept.stages[0].outputs, std::vector<int>{0});
  EXPECT_EQ(kept.stages[0].graph.outputs.size(), 2u);
  // The last stage's own loss keeps its place among the outputs; that of another stage is None.
  EXPECT_EQ(std::tuple(kept.local_losses[1].stage, kept.local_losses[1].output), std::tuple(2, 2));
  EXPECT_EQ(kept.stages[2].graph.outputs.size(), 3u);
  EXPECT_EQ(kept.stages[2].graph.outputs[1], graph::kNoValue);
}

// The last stage has no parameter of its own; the graph reads neither of the two behind the first one.
TEST(Split, ParametersOfTheLossBelongToTheLastStage) {
  graph::Graph graph = graph::parse_graph(R"(input %0: f32[2] = "x"
parameter %1: f32[2]* = "weight"
%2: f32[2]* = aten::mul.Tensor(%0, %1)
pipe_split
%3: f32[2]* = aten::relu(%2)
return %3
)");
  for (const char* name : {"loss.scale", "aside"}) {
    graph::Attribute& unread = graph.attributes.emplace_back();
    unread.name = name;
    unread.tensor = at::ones({1});
  }
  const auto names = [](const graph::Graph& stage) {
    std::vector<std::string> all;
    for (const graph::Attribute& attribute : stage.attributes) all.push_back(attribute.name);
    return all;
  };
  const Pipe pipe = split(graph, {.loss_parameters = {"loss.scale"}});
  EXPECT_EQ(names(pipe.stages[0].graph), std::vector<std::string>{"weight"});
  EXPECT_EQ(names(pipe.stages[1].graph), (std::vector<std::string>{"loss.scale", "aside"}));
  EXPECT_EQ(names(split(graph, {}).stages[0].graph), (std::vector<std::string>{"weight", "loss.scale", "aside"}));
  graph.attributes[1].aliases = {"criterion.scale"};
  EXPECT_EQ(names(split(graph, {.loss_parameters = {"criterion.scale"}}).stages[0].graph),
            std::vector<std::string>{"weight"});
}

TEST(Split, ALossReadsParametersOfTheLastStageOnly) {
  const graph::Graph graph = graph::parse_graph(R"(input %0: f32[2] = "x"
parameter %1: f32[2]* = "first"
parameter %2: f32[2]* = "shared"
parameter %3: f32[2]* = "last"
%4: f32[2]* = aten::mul.Tensor(%0, %1)
%5: f32[2]* = aten::mul.Tensor(%4, %2)
pipe_split
%6: f32[2]* = aten::mul.Tensor(%5, %2)
%7: f32[2]* = aten::mul.Tensor(%6, %3)
return %7
)");
  const auto of = [&](const std::string& name, MultiUse multi_use = MultiUse::Replicate) {
    return testing::refusal([&] { split(graph, {.loss_parameters = {name}, .multi_use = multi_use}); });
  };
  const auto refused = [](const std::string& name) {
    return "split: loss_parameters names '" + name +
           "', which belongs to stage 0, whose forward reads it; a loss reads parameters of the last stage, 1, only: "
           "let that one use it, too (MultiUse::Replicate), or leave it out";
  };
  EXPECT_EQ(of("last"), "accepted");
  EXPECT_EQ(of("shared"), "accepted") << "the last stage has a copy";
  EXPECT_EQ(of("shared", MultiUse::Transmit), refused("shared"));
  EXPECT_EQ(of("first"), refused("first"));
  EXPECT_EQ(
      of("scale"),
      "split: there is no parameter 'scale' for the loss function (loss_parameters); use one of the names that the "
      "model's parameters have");
}

TEST(Split, ALocalLossGivesItsValuesAGradient) {
  // The outputs alone give none: the loss is computed from output 2.
  const graph::Graph graph = graph::parse_graph(R"(input %0: f32[2] = "x"
%1: f32[2]* = aten::relu(%0)
pipe_split
%2: f32[]* = aten::sum(%1, None)
%3: f32[2] = aten::sin(%0)
pipe_split
%4: f32[2] = aten::neg(%3)
return %4, %2
)");
  const auto has_gradient = [&](std::vector<int> local_losses) {
    const Pipe pipe = split(graph, {.loss_outputs = std::vector<int>{0}, .local_losses = std::move(local_losses)});
    return std::ranges::any_of(pipe.boundaries, &Boundary::has_gradient);
  };
  EXPECT_FALSE(has_gradient({}));
  EXPECT_TRUE(has_gradient({1}));
}

TEST(Split, RefusesALocalLossThatIsNone) {
  const graph::Graph graph = graph::parse_graph(kWithLosses);
  const auto refusal = [&](int output) { return testing::refusal([&] { split(graph, {.local_losses = {output}}); }); };
  EXPECT_EQ(refusal(3), "split: local loss 3: the model has 3 outputs");
  EXPECT_TRUE(testing::refusal([&] {
                split(graph, {.local_losses = {1, 1}});
              }).starts_with("split: local loss 1 is named twice"));
  EXPECT_TRUE(testing::refusal([&] {
                split(graph, {.loss_outputs = std::vector<int>{0, 1}, .local_losses = {1}});
              }).starts_with("split: local loss 1 is named twice"));
  EXPECT_EQ(refusal(0), "split: local loss 0 is f32[2]; expected a floating-point scalar that a stage computes");
}

}  // namespace
}  // namespace plumbline::split
