// Every model of the corpus, whole and in stages: traced, executed, and compared bit for bit with plain autograd.
#include "reference/models/zoo.h"
#include "reference/testing/whole_batch.h"
#include "runtime/partition/testing/trace_testing.h"
#include "runtime/partition/trace/decompositions.h"
#include "runtime/split/split.h"
#include "runtime/testing/parameter_name.h"

namespace plumbline::partition {
namespace {

class TraceZoo : public ::testing::TestWithParam<std::string> {};

TEST_P(TraceZoo, IsBitwiseEager) {
  const models::Model model = models::make_model(GetParam(), reference::Dtype::F32, 3);
  for (const bool training : {true, false}) {
    SCOPED_TRACE(training ? "training" : "evaluating");
    model.module->train(training);
    const JointTrace trace = expect_bitwise(*model.module, model.forward,
                                            testing::whole_batch(GetParam(), reference::Dtype::F32, 4, 3).inputs);
    EXPECT_FALSE(trace.tangent_of.empty());
    // After decomposition, every node must have its recorded shape, strides and dtype.
    const JointGraph parts = decompose(trace.graph);
    verify(parts);
    for (const JointNode& node : parts.nodes)  // products of bf16, which autocast makes, stay whole
      EXPECT_TRUE(!decomposable().contains(node.op) || GetParam().find("autocast") != std::string::npos) << node.name;
    EXPECT_NO_THROW(JointRun(parts, trace.constants)(any_inputs(parts)));
  }
}

TEST_P(TraceZoo, EveryStageIsBitwiseInterpreted) {
  const models::Model model = models::make_model(GetParam(), reference::Dtype::F32, 5);
  const graph::Graph graph =
      capture_of(*model.module, model.forward, testing::whole_batch(GetParam(), reference::Dtype::F32, 2, 5).inputs);
  const int stages = std::min(4, models::most_stages(model));
  const split::Pipe pipe = split::split(graph, {.points = models::stage_points(model, stages)});
  at::manual_seed(6);
  for (int s = 0; s < pipe.num_stages(); ++s) {
    SCOPED_TRACE("stage " + std::to_string(s));
    const graph::Graph& stage = pipe.stages[s].graph;
    Tensors inputs;
    for (const graph::GraphInput& input : stage.inputs) {
      const graph::Value& value = stage.values[input.value];
      const bool real = at::isFloatingType(value.dtype);
      inputs.push_back(real ? at::randn(value.sizes, value.dtype) : at::zeros(value.sizes, value.dtype));
      inputs.back().set_requires_grad(real && value.requires_grad);
    }
    expect_as_interpreted(stage, inputs);
  }
}

INSTANTIATE_TEST_SUITE_P(All, TraceZoo, ::testing::ValuesIn(models::model_names()), testing::ParameterName());

}  // namespace
}  // namespace plumbline::partition
