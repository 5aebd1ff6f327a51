// PiPPy's test_ir.py, each test named after its original. The following of its 23 tests are elsewhere:
//   loss_backward_sequential, loss_backward_tracing,
//   grad_accumulation                                   TestIr.* in reference/detach/detach_executor_test.cc
//   invoke_pipeline_error                               TestIr.* in root_graph_test.cc
//   output_loss_value_spec                              TestIr.* in loss_mark_test.cc
//   pipe_forward_kwargs, kwarg_double_star              TestIr.* in signature_test.cc
//   loss_is_a_function, trivial_loss_wrapper            TestIr.* in runtime/capture/pipe_modules_test.cc
#include <torch/nn/modules/container/sequential.h>

#include <type_traits>

#include "reference/testing/upstream_models.h"
#include "runtime/capture/pipe_modules.h"
#include "runtime/microbatch/chunk.h"

namespace plumbline::upstream {
namespace {

constexpr int64_t kWidth = 16, kRows = 5;

split::SplitOptions trained(split::MultiUse multi_use) {
  split::SplitOptions options;
  options.loss_outputs = {1};
  options.multi_use = multi_use;
  return options;
}

/// The stages that own each parameter, as "name: 0 1".
Names owners(const split::Pipe& pipe) {
  std::map<std::string, std::string> stages;
  for (int s = 0; s < pipe.num_stages(); ++s) {
    const split::StageState state = split::make_stage_state(pipe, s);
    for (const auto& [name, tensor] : state.parameters) stages[name] += " " + std::to_string(s);
  }
  Names texts;
  for (const auto& [name, text] : stages) texts.push_back(name + ":" + text);
  return texts;
}

/// Two parameters and a layer; one parameter and the layer are used in two stages; and a skip connection.
struct Code : Module {
  Tensors forward(const Tensors& in) {
    at::Tensor x = in[0].mm(mm_param);
    const at::Tensor skip = x;
    x = x.relu();
    capture::pipe_split();
    x = capture::call(lin, x.mm(mm_param));
    capture::pipe_split();
    return {capture::call(lin, (x.relu() + skip).mm(mm_param2))};
  }
  static Names names() { return {"x"}; }
  at::Tensor mm_param = register_parameter("mm_param", mm_weight(kWidth));
  at::Tensor mm_param2 = register_parameter("mm_param2", mm_weight(kWidth));
  Linear lin = register_module("lin", Linear(kWidth, kWidth));
};

Tensors one_input() { return {at::randn({kRows, kWidth}).requires_grad_(true)}; }

TEST(TestIr, Sequential) {
  at::manual_seed(1);
  torch::nn::Sequential layers;
  const Linear first(kWidth, kWidth);
  layers->push_back(first);
  for (int i = 0; i < 4; ++i) layers->push_back(Linear(kWidth, kWidth));
  layers->push_back(first);
  capture::PipeSequential model(capture::PipeSequentialImpl::from_sequential(layers));
  const split::ModelHandle loss =
      with_loss({model.get(), [&](const Tensors& in) { return Tensors{model->forward(in[0])}; }, {"x"}});
  const Tensors inputs = one_input();
  const split::Pipe pipe = split::make_pipe(loss, inputs, true, trained(split::MultiUse::Replicate));
  ASSERT_EQ(pipe.num_stages(), 6);
  EXPECT_EQ(shared_text(pipe), (Names{"0.bias: 0 5", "0.weight: 0 5"}));
  for (int s = 0; s < 6; ++s) {
    ASSERT_EQ(pipe.stages[s].graph.module_calls.size(), 1u);
    EXPECT_EQ(pipe.stages[s].graph.module_calls[0].name, std::to_string(s % 5)) << "5 is the other name of 0";
  }
  expect_equal(pipe, loss, inputs);
  expect_same(loss.forward(inputs).at(0), layers->forward(inputs[0]), "the plain sequence");
}

TEST(TestIr, TracingTransmit) {
  at::manual_seed(2);
  Code model;
  const Tensors inputs = one_input();
  const split::Pipe pipe = split::make_pipe(with_loss(handle(model)), inputs, true, trained(split::MultiUse::Transmit));
  ASSERT_EQ(pipe.num_stages(), 3);
  EXPECT_TRUE(pipe.shared.empty());
  EXPECT_EQ(owners(pipe), (Names{"lin.bias: 1", "lin.weight: 1", "mm_param: 0", "mm_param2: 2"}));
  expect_equal(pipe, with_loss(handle(model)), inputs);
}

TEST(TestIr, TracingReplicate) {
  at::manual_seed(3);
  Code model;
  const Tensors inputs = one_input();
  const split::Pipe pipe =
      split::make_pipe(with_loss(handle(model)), inputs, true, trained(split::MultiUse::Replicate));
  ASSERT_EQ(pipe.num_stages(), 3);
  EXPECT_EQ(shared_text(pipe), (Names{"lin.bias: 1 2", "lin.weight: 1 2", "mm_param: 0 1"}));
  EXPECT_EQ(owners(pipe), (Names{"lin.bias: 1 2", "lin.weight: 1 2", "mm_param: 0 1", "mm_param2: 2"}));
  expect_equal(pipe, with_loss(handle(model)), inputs);
}

/// A parameter one level down, and a forward that uses modules with one each.
struct Nest : Module {
  explicit Nest(at::Tensor value) : param(register_parameter("param", std::move(value))) {}
  at::Tensor forward(const at::Tensor& x) { return x + param; }
  at::Tensor param;
};

/// nest, a border, nest again or not, a border, relu.
struct UsesNest : Module {
  UsesNest(const std::string& name, at::Tensor value, bool again)
      : nest(register_module(name, std::make_shared<Nest>(std::move(value)))), again_(again) {}
  Tensors forward(const Tensors& in) {
    at::Tensor x = capture::call(nest, in[0]);
    capture::pipe_split();
    if (again_) x = capture::call(nest, x);
    capture::pipe_split();
    return {x.relu()};
  }
  static Names names() { return {"x"}; }
  std::shared_ptr<Nest> nest;

 private:
  bool again_;
};

TEST(TestIr, TracingSharedNonLeafMod) {
  at::manual_seed(4);
  UsesNest model("shared", at::randn({5, 3}), true);
  const Tensors inputs = {at::randn({5, 3}).requires_grad_(true)};
  const split::Pipe pipe = split::make_pipe(with_loss(handle(model)), inputs, true, trained(split::MultiUse::Transmit));
  ASSERT_EQ(pipe.num_stages(), 3);
  EXPECT_TRUE(pipe.shared.empty());
  EXPECT_EQ(owners(pipe), Names{"shared.param: 0"});
  const auto sent = std::ranges::find(pipe.boundaries, "shared.param", &split::Boundary::name);
  ASSERT_NE(sent, pipe.boundaries.end());
  EXPECT_TRUE(sent->producer == 0 && sent->consumers.size() == 1 && sent->consumers[0].stage == 1);
  EXPECT_TRUE(sent->has_gradient);
  expect_equal(pipe, with_loss(handle(model)), inputs);
}

TEST(TestIr, DeeplyNestedParameter) {
  UsesNest model("nest", at::ones({5, 5}), false);
  const Tensors inputs = {at::ones({5, 5})};
  const split::Pipe pipe =
      split::make_pipe(with_loss(handle(model)), inputs, true, trained(split::MultiUse::Replicate));
  ASSERT_EQ(pipe.num_stages(), 2) << "nothing lies between the two markers";
  EXPECT_EQ(owners(pipe), Names{"nest.param: 0"});
  expect_equal(pipe, with_loss(handle(model)), inputs);
  expect_same(reference::DetachExecutor(pipe).run(inputs).at(0), 2 * at::ones({5, 5}), "output");
}

TEST(TestIr, DeeplyNestedSharedParam) {
  for (const split::MultiUse multi_use : {split::MultiUse::Replicate, split::MultiUse::Transmit}) {
    UsesNest model("nest", at::ones({5, 5}), true);
    const Tensors inputs = {at::ones({5, 5})};
    const split::Pipe pipe = split::make_pipe(with_loss(handle(model)), inputs, true, trained(multi_use));
    const bool copied = multi_use == split::MultiUse::Replicate;
    EXPECT_EQ(owners(pipe), Names{copied ? "nest.param: 0 1" : "nest.param: 0"});
    EXPECT_EQ(shared_text(pipe), copied ? Names{"nest.param: 0 1"} : Names());
    expect_equal(pipe, with_loss(handle(model)), inputs);
    expect_same(reference::DetachExecutor(pipe).run(inputs).at(0), 3 * at::ones({5, 5}), "output");
  }
}

TEST(TestIr, MultiUseParamError) {
  static_assert(!std::is_convertible_v<int, split::MultiUse> && !std::is_assignable_v<split::MultiUse&, int>,
                "what is no MultiUse does not compile");
}

TEST(TestIr, MultiUseParamDictError) {
  at::manual_seed(5);
  Code model;
  const Tensors inputs = one_input();
  split::SplitOptions options = trained(split::MultiUse::Replicate);
  options.multi_use_of = {{"mm_param", split::MultiUse::Transmit}, {"lin.weight", split::MultiUse::Transmit}};
  const split::Pipe pipe = split::make_pipe(with_loss(handle(model)), inputs, true, options);
  EXPECT_EQ(shared_text(pipe), Names{"lin.bias: 1 2"}) << "one setting for each";
  expect_equal(pipe, with_loss(handle(model)), inputs);
  options.multi_use_of["mm_parm"] = split::MultiUse::Transmit;
  EXPECT_EQ(testing::refusal([&] { split::make_pipe(with_loss(handle(model)), inputs, true, options); }),
            "split: there is no parameter 'mm_parm' to transmit or replicate; use one of the names that the model's "
            "parameters have");
}

/// f.submod (a layer, then + 5), then b (relu).
struct Base : Module {
  struct Foo : Module {
    at::Tensor forward(const at::Tensor& x) { return capture::call(l, x) + 5; }
    Linear l = register_module("l", Linear(kWidth, kWidth));
  };
  struct Indirection : Module {
    at::Tensor forward(const at::Tensor& x) { return capture::call(submod, x); }
    std::shared_ptr<Foo> submod = register_module("submod", std::make_shared<Foo>());
  };
  struct Bar : Module {
    at::Tensor forward(const at::Tensor& x) { return x.relu(); }
  };
  Tensors forward(const Tensors& in) { return {capture::call(b, capture::call(f, in[0]))}; }
  static Names names() { return {"x"}; }
  std::shared_ptr<Indirection> f = register_module("f", std::make_shared<Indirection>());
  std::shared_ptr<Bar> b = register_module("b", std::make_shared<Bar>());
};

std::string operators(const split::Pipe& pipe) {
  std::string text;
  for (const split::Stage& stage : pipe.stages) {
    text += text.empty() ? "" : "| ";
    for (const graph::Node& node : stage.graph.nodes) text += node.op->operator_name().name.substr(6) + " ";
  }
  return text;
}

void expect_annotated(const split::SplitPoint& point) {
  at::manual_seed(6);
  Base model;
  const Tensors inputs = one_input();
  split::SplitOptions options = trained(split::MultiUse::Replicate);
  options.points = {point};
  const split::Pipe pipe = split::make_pipe(with_loss(handle(model)), inputs, true, options);
  EXPECT_EQ(operators(pipe), "t addmm add | relu square mean ");
  expect_equal(pipe, with_loss(handle(model)), inputs);
}

TEST(TestIr, AnnotateSplitPointsBeginning) { expect_annotated({"b", split::SplitPoint::Where::Beginning}); }

TEST(TestIr, AnnotateSplitPointsEnd) { expect_annotated({"f.submod", split::SplitPoint::Where::End}); }

TEST(TestIr, AnnotateSplitPointsNonexistentModule) {
  at::manual_seed(7);
  Base model;
  const auto why = [&](const std::string& name) {
    return testing::refusal(
        [&] { split::make_pipe(handle(model), one_input(), true, {{{name, split::SplitPoint::Where::End}}}); });
  };
  EXPECT_EQ(why("foo.bar.baz"),
            "split: no module named 'foo.bar.baz' was entered; there is no 'foo'; entered were: b, f");
  EXPECT_EQ(why("f.bar.baz"),
            "split: no module named 'f.bar.baz' was entered; there is no 'f.bar'; in 'f' were entered: f.submod");
  EXPECT_EQ(why("f.submod.l.x"),
            "split: no module named 'f.submod.l.x' was entered; there is no 'f.submod.l.x'; in 'f.submod.l' were "
            "entered: none");
  EXPECT_EQ(why("f.submod.l"), "accepted");
}

/// A buffer with two names that two stages read, one that is written, one that is not persistent, and one that is
/// unused.
struct Buffers : Module {
  Tensors forward(const Tensors& in) {
    at::Tensor x = capture::call(lin, in[0]) + read;
    capture::pipe_split();
    {
      const c10::AutoGradMode no_grad(false);
      count.add_(1);
    }
    x = x * transient + count;
    capture::pipe_split();
    return {x + read};
  }
  static Names names() { return {"x"}; }
  Linear lin = register_module("lin", Linear(kWidth, kWidth));
  at::Tensor read = register_buffer("read", at::randn({kWidth}));
  at::Tensor tied = register_buffer("tied", read);
  at::Tensor count = register_buffer("count", at::zeros({}));
  at::Tensor transient = register_buffer("transient", at::randn({kWidth}));
  at::Tensor unused = register_buffer("unused", at::randn({2}));
};

TEST(TestIr, PreservesBuffer) {
  at::manual_seed(8);
  Buffers model;
  const at::Tensor x = at::randn({kRows, kWidth});
  graph::Graph graph = capture::capture(model, handle(model).forward, {{"x", x}});
  // C++ modules cannot express this; modules from torch.export archives can.
  std::ranges::find(graph.attributes, "transient", &graph::Attribute::name)->persistent = false;
  const split::Pipe pipe = split::split(graph);
  ASSERT_EQ(pipe.num_stages(), 3);
  expect_state_is_models(pipe, model, {"transient"});
  std::vector<BoundStage> stages = bound_stages(pipe);
  const std::vector<std::set<std::string>> expected = {{"read"}, {"count", "transient"}, {"read"}};
  for (int s = 0; s < 3; ++s) {
    std::set<std::string> buffers;
    for (const auto& [name, tensor] : stages[s].state().buffers)
      if (name != "unused") buffers.insert(name);
    EXPECT_EQ(buffers, expected[s]) << "stage " << s;
    EXPECT_EQ(stages[s].state_dict().contains("count"), s == 1);
    EXPECT_FALSE(stages[s].state_dict().contains("transient"));
    EXPECT_EQ(stages[s].state_dict().contains("tied"), s != 1);
  }
  const at::Tensor written = stages[1].state().buffers.at("count");
  for (int run = 1; run <= 3; ++run) {
    const at::Tensor before = model.count.clone();
    const at::Tensor out = run_stages(pipe, stages, {x}, false).outputs.at(0);
    EXPECT_EQ(written.item<float>(), static_cast<float>(run));
    model.count.copy_(before);
    expect_same(out, model.forward({x}).at(0), "output");
  }
}

TEST(TestIr, GeneralizedChunking) {
  at::manual_seed(9);
  // The integer in the original's named tuple is a constant in the forward here, because inputs are tensors.
  struct TwoOutputs : Module {
    Tensors forward(const Tensors& in) {
      const at::Tensor added = in[0] + in[1] + 42;
      capture::pipe_split();
      return {added, in[0] * 42};
    }
    static Names names() { return {"x", "my_tensor"}; }
  } model;
  constexpr int kChunks = 5;
  const Tensors batch = {at::randn({5, 3}), at::randn({5, 3})};
  const auto replicated =
      microbatch::split_inputs(model.names(), batch, {microbatch::ChunkSpec{true}, microbatch::ChunkSpec{}}, kChunks);
  const auto chunks =
      microbatch::split_inputs(model.names(), batch, {microbatch::ChunkSpec{}, microbatch::ChunkSpec{}}, kChunks);
  ASSERT_EQ(replicated.size(), 5u);
  ASSERT_EQ(chunks.size(), 5u);
  const split::Pipe pipe = split::make_pipe(handle(model), chunks[0], true, {});
  ASSERT_EQ(pipe.num_stages(), 2);
  reference::DetachExecutor executor(pipe);
  std::vector<Tensors> outputs;
  for (int i = 0; i < kChunks; ++i) {
    expect_same(replicated[i][0], batch[0], "the whole x");
    expect_same(replicated[i][1], batch[1].narrow(0, i, 1), "a row of my_tensor");
    expect_same(chunks[i][0], batch[0].narrow(0, i, 1), "a row of x");
    outputs.push_back(executor.run({chunks[i][0]}, {{"my_tensor", chunks[i][1]}}));
  }
  const Tensors merged = microbatch::merge_outputs(outputs, {microbatch::ChunkSpec{}, microbatch::ChunkSpec{}}),
                expected = model.forward(batch);
  ASSERT_EQ(merged.size(), 2u);
  expect_same(merged[0], expected[0], "added");
  expect_same(merged[1], expected[1], "multiplied");
}

TEST(TestIr, RemapQualname) {
  // Names need no map back: in every stage, and when sent, a parameter keeps its name from the model.
  at::manual_seed(10);
  Code model;
  std::map<std::string, at::Tensor> expected;
  for (const auto& item : model.named_parameters()) expected[item.key()] = item.value();
  std::set<std::string> modules;
  for (const auto& item : model.named_modules("", /*include_self=*/false)) modules.insert(item.key());
  for (const split::MultiUse multi_use : {split::MultiUse::Replicate, split::MultiUse::Transmit}) {
    const split::Pipe pipe = split::make_pipe(handle(model), one_input(), true, {.points = {}, .multi_use = multi_use});
    size_t parameters = 0, sent = 0;
    for (const split::Stage& stage : pipe.stages) {
      for (const graph::Attribute& attribute : stage.graph.attributes) {
        ASSERT_TRUE(expected.contains(attribute.name)) << attribute.name;
        EXPECT_TRUE(attribute.tensor.is_same(expected[attribute.name])) << attribute.name;
        ++parameters;
      }
      for (const graph::ModuleCall& entered : stage.graph.module_calls) EXPECT_TRUE(modules.contains(entered.name));
    }
    for (const split::Boundary& boundary : pipe.boundaries) sent += expected.contains(boundary.name);
    EXPECT_EQ(parameters, multi_use == split::MultiUse::Replicate ? 7u : 4u);
    EXPECT_EQ(sent, multi_use == split::MultiUse::Replicate ? 0u : 3u);
  }
}

}  // namespace
}  // namespace plumbline::upstream
