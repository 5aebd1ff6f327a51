// The expected graphs were derived by hand from the seed's _insert_stage_symbolic_backward.
#include "reference/detach/root_graph.h"

#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include "runtime/error.h"
#include "runtime/graph/io/text.h"
#include "runtime/graph/run/program.h"
#include "runtime/graph/testing/parse.h"
#include "runtime/split/split.h"

namespace plumbline::reference {
namespace {

std::string root_text(const std::string& model, std::optional<int> loss = std::nullopt,
                      split::Route route = split::Route::Direct) {
  split::SplitOptions options;
  options.route = route;
  return to_text(root_graph(split::split(graph::parse_graph(model), options), loss));
}

/// Checks the printed form, and that it parses back.
void expect_root(const std::string& model, std::optional<int> loss, const std::string& expected) {
  EXPECT_EQ(root_text(model, loss), expected);
  EXPECT_EQ(to_text(graph::parse_graph(expected)), expected);
}

const std::string kSkip = R"(input %0: f32[4]* = "x"
%1: f32[4]* = aten::relu(%0)
pipe_split
%2: f32[4]* = aten::neg(%1)
pipe_split
%3: f32[4]* = aten::mul.Tensor(%2, %1)
%4: f32[]* = aten::sum(%3, None)
return %4
)";

TEST(RootGraph, ForwardCallsTheStagesInOrder) {
  expect_root(kSkip, std::nullopt, R"(input %0: f32[4]* = "x"
[%1: f32[4]*] = plumbline::call_stage(0, [%0])
[%2: f32[4]*] = plumbline::call_stage(1, [%1])
[%3: f32[]*] = plumbline::call_stage(2, [%1, %2])
return %3
)");
  EXPECT_EQ(root_text("return\n"), "[] = plumbline::call_stage(0, [])\nreturn\n");
}

TEST(RootGraph, AValueOfSeveralUsersAccumulates) {
  expect_root(kSkip, 0, R"(input %0: f32[4]* = "x"
[%1: f32[4]*] = plumbline::call_stage(0, [%0])
[%2: f32[4]*] = plumbline::call_stage(1, [%1])
[%3: f32[]*] = plumbline::call_stage(2, [%1, %2])
[%4: f32[4], %5: f32[4]] = plumbline::stage_backward([%3], [None], [%1, %2])
[%6: f32[4]] = plumbline::stage_backward([%2], [%5], [%1])
%7: f32[4] = plumbline::null_coalesce_accumulate(%4, %6)
[%8: f32[4]] = plumbline::stage_backward([%1], [%7], [%0])
return %3
)");
}

TEST(RootGraph, WhatIsPassedOnIsKnownByItsFirstName) {
  // The input goes to every stage, its gradients are not summed; stage 1 makes the loss, stage 2 does not contribute.
  expect_root(R"(input %0: f32[]* = "x"
input %1: i64[] = "index"
%2: f32[]* = aten::relu(%0)
pipe_split
%3: f32[]* = aten::mul.Tensor(%2, %0)
pipe_split
%4: f32[]* = aten::mul.Tensor(%2, %1)
return %4, %3, None, %4, %0
)",
              1, R"(input %0: f32[]* = "x"
input %1: i64[] = "index"
[None, None, %2: f32[]*] = plumbline::call_stage(0, [%0, %1])
[%3: f32[]*] = plumbline::call_stage(1, [%0, %2])
[%4: f32[]*, None, None, None, None] = plumbline::call_stage(2, [%0, %1, %2, %3])
[%5: f32[], %6: f32[]] = plumbline::stage_backward([%3], [None], [%0, %2])
[%7: f32[], None] = plumbline::stage_backward([%2], [%6], [%0, %1])
return %4, %3, None, %4, %0
)");
}

TEST(RootGraph, IsTheSameHoweverValuesTravel) {
  for (split::Route route : {split::Route::Chain, split::Route::Neighbours}) {
    const std::string text = root_text(kSkip, 0, route);
    EXPECT_NE(text.find("[%4: f32[4], %5: f32[4]] = plumbline::stage_backward([%3], [None], ["), std::string::npos)
        << text;
    EXPECT_NE(text.find("%7: f32[4] = plumbline::null_coalesce_accumulate("), std::string::npos) << text;
  }
}

TEST(RootGraph, OnlyWhatReachesTheLossGetsABackward) {
  // Stage 1 feeds the last one, but another output; of stage 0 one value matters, and an integer crosses.
  expect_root(R"(input %0: f32[2] = "x"
parameter %1: f32[2]* = "w"
%2: f32[2]* = aten::mul.Tensor(%0, %1)
%3: f32[2]* = aten::neg(%1)
%4: i64[2] = aten::argsort(%0, -1, False)
pipe_split
%5: f32[2]* = aten::mul.Tensor(%3, %1)
pipe_split
%6: f32[2]* = aten::gather(%2, 0, %4, False)
%7: f32[]* = aten::sum(%6, None)
%8: f32[2]* = aten::neg(%5)
return %8, %7
)",
              1, R"(input %0: f32[2] = "x"
[%1: f32[2]*, %2: f32[2]*, %3: i64[2]] = plumbline::call_stage(0, [%0])
[%4: f32[2]*] = plumbline::call_stage(1, [%2])
[%5: f32[2]*, %6: f32[]*] = plumbline::call_stage(2, [%1, %3, %4])
[%7: f32[2], None, None] = plumbline::stage_backward([%6], [None], [%1, %3, %4])
[None] = plumbline::stage_backward([%1], [%7], [%0])
return %5, %6
)");
}

TEST(RootGraph, RefusesALossThatIsNone) {
  const auto refusal = [](int loss) -> std::string {
    try {
      return root_text(R"(input %0: f32[2,1]* = "x"
%1: f32[]* = aten::sum(%0, None)
%2: f32[] = aten::detach(%1)
%3: f32[1,1]* = aten::narrow(%0, 0, 0, 1)
return %0, None, %2, %1, %3
)",
                       loss);
    } catch (const InputError& error) {
      return error.what();
    }
  };
  EXPECT_EQ(refusal(5), "loss: output 5 of the model does not exist; it has 5 outputs");
  EXPECT_EQ(refusal(-1), "loss: output -1 of the model does not exist; it has 5 outputs");
  EXPECT_EQ(refusal(0), "loss: output 0 of the model is f32[2,1]; a loss is one number that requires a gradient");
  EXPECT_EQ(refusal(1), "loss: output 1 of the model is None; a loss is one number that requires a gradient");
  EXPECT_EQ(refusal(2),
            "loss: output 2 of the model is f32[], without a gradient; a loss is one number that requires a gradient");
  for (int loss : {3, 4}) EXPECT_EQ(refusal(loss).find("loss:"), std::string::npos) << loss;
}

TEST(RootGraph, InfoTellsWhatAPipeIs) {
  const split::Pipe pipe =
      split::split(graph::parse_graph("input %0: f32[2]* = \"x\"\n%1: f32[2]* = aten::neg(%0)\npipe_split\n"
                                      "%2: f32[]* = aten::sum(%1, None)\nreturn %2\n"));
  const PipeInfo forward = info(pipe), both = info(pipe, 0);
  EXPECT_EQ(forward.num_stages, 2);
  EXPECT_FALSE(forward.has_loss_and_backward);
  EXPECT_EQ(forward.root.nodes.size(), 2u);
  EXPECT_TRUE(both.has_loss_and_backward);
  EXPECT_EQ(both.root.nodes.size(), 4u);
}

TEST(TestIr, InvokePipelineError) {
  const at::Tensor x = at::ones({4}).requires_grad_(true);
  for (const std::optional<int> loss : {std::optional<int>(), std::optional<int>(0)}) {
    const graph::Program program(root_graph(split::split(graph::parse_graph(kSkip)), loss));
    std::vector<at::Tensor> outputs;
    try {
      program.run(std::vector<at::Tensor>{x}, outputs);
      FAIL() << "it ran";
    } catch (const Error& error) {
      const std::string why = error.what();
      EXPECT_NE(why.find("plumbline::call_stage: the root graph of a pipe does not run by itself; give the Pipe to "
                         "DetachExecutor (one device) or to an Engine (a rank of a schedule)"),
                std::string::npos)
          << why;
      EXPECT_EQ(why.find('\n'), std::string::npos) << why;
    }
  }
}

}  // namespace
}  // namespace plumbline::reference
