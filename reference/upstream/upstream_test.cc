// PyTorch's torch.distributed.pipelining tests of a Pipe (test_pipe.py, test_unflatten.py, test_transformer.py and the
// traced cases of test_stage.py), each test named after its original. PiPPy's test_ir.py is in upstream_ir_test.cc.
// Here everything is compared bit for bit, including gradients, which the originals do not compare.
//
// The errors of _IR.py and the tests that provoke them:
//   spec and policy together            SplitErrors.PointsAndPolicy
//   a module that does not exist        TestIr.AnnotateSplitPointsNonexistentModule
//   running the split graph directly    TestIr.InvokePipelineError (root_graph_test.cc), SplitErrors.RootGraph
//   the loss spec                       TestIr.OutputLossValueSpec and LossMark.* (loss_mark_test.cc)
//   a loss that is none                 RootGraph.RefusesALossThatIsNone (root_graph_test.cc), SplitErrors.LossOutput
//   a model that cannot be captured     Capture.* (runtime/capture/capture_test.cc)
//   LossWrapper without a forward       LossWrapper.WithoutAForwardItRefuses (runtime/capture/pipe_modules_test.cc)
//   multi-use of an unknown parameter   TestIr.MultiUseParamDictError
#include "reference/detach/root_graph.h"
#include "reference/testing/upstream_models.h"
#include "runtime/microbatch/chunk.h"
#include "runtime/microbatch/signature.h"
#include "runtime/testing/refusal.h"

namespace plumbline::upstream {
namespace {

constexpr int64_t kPipeWidth = 16, kPipeRows = 8;

/// Pipes of `model` for all routes, with shared parameters replicated and transmitted, each compared with the model.
template <class Model>
split::Pipe expect_splits(Model& model, const Tensors& inputs, int stages,
                          const std::vector<split::SplitPoint>& points = {}) {
  const split::ModelHandle trained = with_loss(handle(model));
  const auto pipe_of = [&](split::MultiUse multi_use, split::Route route) {
    split::SplitOptions options{points};
    options.loss_outputs = {1};
    options.multi_use = multi_use;
    options.route = route;
    return split::make_pipe(trained, inputs, true, options);
  };
  for (const split::MultiUse multi_use : {split::MultiUse::Replicate, split::MultiUse::Transmit})
    for (const split::Route route : {split::Route::Direct, split::Route::Chain, split::Route::Neighbours}) {
      SCOPED_TRACE("multi use " + std::to_string(int(multi_use)) + ", route " + std::to_string(int(route)));
      const split::Pipe pipe = pipe_of(multi_use, route);
      EXPECT_EQ(pipe.num_stages(), stages);
      EXPECT_TRUE(multi_use == split::MultiUse::Replicate || pipe.shared.empty());
      expect_equal(pipe, trained, inputs);
    }
  return pipe_of(split::MultiUse::Replicate, split::Route::Direct);
}

Tensors two_inputs() {
  return {at::randn({kPipeRows, kPipeWidth}).requires_grad_(true), at::randn({kPipeRows, kPipeWidth})};
}

/// The ExampleCode of test_pipe.py: a skip connection over one stage, and a parameter that two stages use.
struct SkipAndSharedParameter : Module {
  Tensors forward(const Tensors& in) {
    at::Tensor x = in[0].mm(mm_param1);
    const at::Tensor skip = x;
    x = (x + in[1]).relu();
    capture::pipe_split();
    x = capture::call(lin1, x.mm(mm_param1));
    capture::pipe_split();
    x = (x.relu() + skip).mm(mm_param2);
    capture::pipe_split();
    return {capture::call(lin2, x).relu()};
  }
  static Names names() { return {"x", "y"}; }
  at::Tensor mm_param1 = register_parameter("mm_param1", mm_weight(kPipeWidth));
  at::Tensor mm_param2 = register_parameter("mm_param2", mm_weight(kPipeWidth));
  Linear lin1 = register_module("lin1", Linear(kPipeWidth, kPipeWidth));
  Linear lin2 = register_module("lin2", Linear(kPipeWidth, kPipeWidth));
};

TEST(TestPipe, ModelSplit_ExampleCode) {
  at::manual_seed(1);
  SkipAndSharedParameter model;
  const split::Pipe pipe = expect_splits(model, two_inputs(), 4);
  EXPECT_EQ(shared_text(pipe), Names{"mm_param1: 0 1"});
  const bool skips = std::ranges::any_of(pipe.boundaries, [](const split::Boundary& boundary) {
    return boundary.producer == 0 && boundary.consumers.size() == 1 && boundary.consumers[0].stage == 2;
  });
  EXPECT_TRUE(skips) << "the skip connection goes past stage 1";
}

/// Four blocks with markers between them, and an input that only the last stage uses.
struct MarkedMlps : Module {
  Tensors forward(const Tensors& in) {
    at::Tensor x = in[0];
    for (size_t i = 0; i < mlps.size(); ++i) {
      if (i > 0) capture::pipe_split();
      x = capture::call(mlps[i], x);
    }
    return {x - in[1]};
  }
  static Names names() { return {"x", "y"}; }
  std::shared_ptr<Mlp> mlp(int i) {
    return register_module("mlp" + std::to_string(i), std::make_shared<Mlp>(kPipeWidth));
  }
  std::vector<std::shared_ptr<Mlp>> mlps = {mlp(0), mlp(1), mlp(2), mlp(3)};
};

TEST(TestPipe, ModelSplit_MultiMLP) {
  at::manual_seed(2);
  MarkedMlps model;
  const split::Pipe pipe = expect_splits(model, two_inputs(), 4);
  EXPECT_TRUE(pipe.shared.empty());
  for (int s = 0; s < 4; ++s)
    for (const auto& [name, tensor] : BoundStage(pipe, s).state_dict())
      EXPECT_TRUE(name.starts_with("mlp" + std::to_string(s) + ".")) << name << " is in stage " << s;
}

TEST(TestPipe, ModelSplit_ModelWithParamAlias) {
  at::manual_seed(3);
  ModelWithParamAlias model(kPipeWidth);
  const split::Pipe pipe = expect_splits(model, two_inputs(), 2);
  EXPECT_EQ(shared_text(pipe), (Names{"lin0.bias: 0 1", "lin0.weight: 0 1", "mm_param0: 0 1"}));
  for (int s = 0; s < 2; ++s) {
    const auto state = BoundStage(pipe, s).state_dict();
    EXPECT_EQ(state.size(), 6u) << "all names, not only those that the stage's forward uses";
    EXPECT_TRUE(state.at("mm_param0").is_same(state.at("mm_param1")));
    EXPECT_TRUE(state.at("lin0.weight").is_same(state.at("lin1.weight")));
  }
  split::SplitOptions options;
  options.loss_outputs = {1};
  options.multi_use_of = {{"lin1.weight", split::MultiUse::Transmit}};  // any of its names may be used
  const Tensors inputs = two_inputs();
  const split::Pipe mixed = split::make_pipe(with_loss(handle(model)), inputs, true, options);
  EXPECT_EQ(shared_text(mixed), (Names{"lin0.bias: 0 1", "mm_param0: 0 1"}));
  expect_equal(mixed, with_loss(handle(model)), inputs);
}

TEST(TestUnflatten, Unflatten) {
  at::manual_seed(4);
  Nested model(4, 8);
  const Tensors inputs = {at::randn({1, 4, 8, 8}).requires_grad_(true), at::ones({1, 4, 8, 8})};
  const split::Pipe pipe = expect_splits(model, inputs, 4);
  const std::vector<std::set<std::string>> expected = {
      {"block0.conv", "block0.lin0"}, {"block0.lin1"}, {"block1.conv", "block1.lin0"}, {"block1.lin1"}};
  for (int s = 0; s < 4; ++s) {
    std::set<std::string> owners;
    for (const auto& [name, tensor] : BoundStage(pipe, s).state_dict()) owners.insert(name.substr(0, 11));
    EXPECT_EQ(owners, expected[s]) << "stage " << s;
  }
  reference::DetachExecutor executor(pipe);
  expect_same(executor.run({inputs[0]}, {{"constant", inputs[1]}}).at(0), model.forward(inputs).at(0), "by keyword");
  expect_same(inputs[1], at::ones({1, 4, 8, 8}), "the keyword input afterwards");
}

TEST(TransformerTests, Ir) {
  at::manual_seed(5);
  MultiMlp model(kPipeWidth, 8);
  const split::Pipe pipe = expect_splits(model, {at::randn({4, kPipeWidth}).requires_grad_(true)}, 2, {{"layers.4"}});
  Names layers;
  for (const split::Stage& stage : pipe.stages)
    for (const graph::ModuleCall& entered : stage.graph.module_calls)
      if (std::ranges::count(entered.name, '.') == 1) layers.push_back(entered.name);
  Names expected;
  for (int i = 0; i < 8; ++i) expected.push_back("layers." + std::to_string(i));
  EXPECT_EQ(layers, expected) << "each layer once, in order";
  for (const graph::ModuleCall& entered : pipe.stages[1].graph.module_calls) EXPECT_GE(entered.name.at(7), '4');
}

/// Runs micro-batch after micro-batch through stages with their own tensors, and compares with the model on the whole
/// batch. The numbers are whole and few enough that sums are exact in every order, so chunks give the same bits as the
/// whole batch.
template <class Model>
void expect_tracer(Model& model, const Tensors& batch, int stages, const std::vector<split::SplitPoint>& points = {}) {
  constexpr int kMicrobatches = 4;
  model.to(at::kDouble);
  for (const at::Tensor& parameter : model.parameters()) parameter.data().random_(-1, 2);
  for (const at::Tensor& buffer : model.buffers()) buffer.random_(-1, 2);
  const std::vector<Tensors> chunks =
      microbatch::split_inputs(Model::names(), batch, {batch.size(), microbatch::ChunkSpec{}}, kMicrobatches);
  const split::Pipe pipe = split::make_pipe(handle(model), chunks[0], true, {points});
  ASSERT_EQ(pipe.num_stages(), stages);
  expect_state_is_models(pipe, model);
  std::vector<BoundStage> built = bound_stages(pipe);
  std::vector<Tensors> outputs;
  for (const Tensors& chunk : chunks) outputs.push_back(run_stages(pipe, built, chunk, false).outputs);
  const Tensors merged = microbatch::merge_outputs(outputs, {microbatch::ChunkSpec{}}), expected = model.forward(batch);
  expect_same(merged.at(0), expected.at(0), "joined output");
  EXPECT_GT(at::count_nonzero(expected.at(0)).item<int64_t>(), 0);
}

at::Tensor whole_numbers() { return at::randint(-2, 3, {kPipeRows, kPipeWidth}, at::kDouble); }

TEST(TestStage, Tracer_ExampleCode) {
  for (int stages = 2; stages <= 8; ++stages) {
    SCOPED_TRACE(stages);
    at::manual_seed(stages);
    ExampleCode model(kPipeWidth, stages);
    expect_tracer(model, {whole_numbers()}, stages);
    ExampleCode another(kPipeWidth, stages);
    expect_splits(another, {at::randn({kPipeRows, kPipeWidth}).requires_grad_(true)}, stages);
  }
}

TEST(TestStage, Tracer_MultiMLP) {
  at::manual_seed(6);
  MultiMlp model(kPipeWidth, 2);
  expect_tracer(model, {whole_numbers()}, 2, {{"layers.1"}});
}

TEST(TestStage, TracerKwargs_ModelWithKwargs) {
  const microbatch::Signature signature{
      {{"x"}, {"y", microbatch::ParameterKind::PositionalOrKeyword, at::zeros({kPipeRows, kPipeWidth}, at::kDouble)}}};
  const auto tensors = [](const std::vector<capture::NamedTensor>& bound) {
    return Tensors{bound[0].tensor, bound[1].tensor};
  };
  for (int stages = 2; stages <= 8; ++stages) {
    SCOPED_TRACE(stages);
    at::manual_seed(stages);
    ModelWithKwargs model(kPipeWidth, stages);
    const at::Tensor x = whole_numbers(), y = whole_numbers();
    expect_tracer(model, tensors(signature.bind({x}, {{"y", y}})), stages);
    const at::Tensor with = model.forward({x, y}).at(0), without = model.forward({x, at::zeros_like(x)}).at(0);
    EXPECT_FALSE(at::equal(with, without)) << "y is used";
    expect_tracer(model, tensors(signature.bind({x})), stages);
    ModelWithKwargs another(kPipeWidth, stages);
    expect_splits(another, two_inputs(), stages);
  }
}

TEST(SplitErrors, PointsAndPolicy) {
  at::manual_seed(7);
  MultiMlp model(kPipeWidth, 2);
  const auto make = [&](const split::SplitOptions& options) {
    split::make_pipe(handle(model), {at::randn({2, kPipeWidth})}, true, options);
  };
  split::SplitOptions options{{{"layers.1"}}};
  EXPECT_EQ(testing::refusal([&] { make(options); }), "accepted");
  options.policy = [](const graph::Graph&) { return std::vector<int32_t>{1}; };
  EXPECT_EQ(testing::refusal([&] { make(options); }),
            "split: both split points and a split policy are given; give one of them");
  options.points.clear();
  EXPECT_EQ(testing::refusal([&] { make(options); }), "accepted");
  options.policy = [](const graph::Graph&) { return std::vector<int32_t>{99}; };
  EXPECT_EQ(testing::refusal([&] { make(options); }),
            "split: the policy wants a stage to begin at node 99, but the graph has nodes 0 to 10");
}

TEST(SplitErrors, RootGraph) {
  at::manual_seed(9);
  SkipAndSharedParameter model;
  const Tensors inputs = two_inputs();
  const split::Pipe pipe = split::make_pipe(with_loss(handle(model)), inputs, true, {});
  for (const std::optional<int> loss : {std::optional<int>(), std::optional<int>(1)}) {
    const graph::Program program(reference::root_graph(pipe, loss));
    Tensors outputs;
    testing::expect_part(testing::failure([&] { program.run(inputs, outputs); }),
                         "the root graph of a pipe does not run by itself");
  }
}

TEST(SplitErrors, LossOutput) {
  at::manual_seed(10);
  MarkedMlps model;
  const Tensors inputs = two_inputs();
  split::SplitOptions options;
  options.loss_outputs = {2};
  EXPECT_EQ(testing::refusal([&] { split::make_pipe(with_loss(handle(model)), inputs, true, options); }),
            "split: the loss needs output 2 of the model, which has 2 outputs");
  const split::Pipe pipe = split::make_pipe(with_loss(handle(model)), inputs, true, {});
  for (const int loss : {-1, 0, 2})
    EXPECT_NE(testing::refusal([&] { reference::DetachExecutor(pipe, loss); }), "accepted") << loss;
}

TEST(SplitErrors, StateOfAnotherStage) {
  at::manual_seed(11);
  MarkedMlps model;
  const split::Pipe pipe = split::make_pipe(handle(model), two_inputs(), true, {});
  graph::Graph graph = pipe.stages[1].graph;
  EXPECT_TRUE(testing::refusal([&] {
                split::bind(graph, split::make_stage_state(pipe, 2));
              }).starts_with("split: a stage uses 'mlp1.net1.weight'"));
}

}  // namespace
}  // namespace plumbline::upstream
