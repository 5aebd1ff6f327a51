// EngineOptions::weight_work: modules that compute their weight gradients themselves (PyTorch's dw_builder).
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include <utility>

#include "runtime/engine/testing/engine_test_models.h"
#include "runtime/engine/testing/halved_schedules.h"

namespace plumbline::testing {
namespace {

/// The pending weight work of the backwards on this rank's thread.
struct Queued {
  at::Tensor x, weight, bias, grad;
};
thread_local std::vector<Queued> queue;

/// A linear whose backward computes only the gradient of its input, and queues the rest.
struct LinearForInput : torch::autograd::Function<LinearForInput> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x, const at::Tensor& weight,
                            const at::Tensor& bias) {
    context->save_for_backward({x, weight, bias});
    const at::AutoDispatchBelowADInplaceOrView below;
    return at::linear(x, weight, bias);
  }
  static Tensors backward(torch::autograd::AutogradContext* context, const Tensors& grads) {
    const Tensors saved = context->get_saved_variables();
    queue.push_back({saved[0].detach(), saved[1], saved[2], grads[0].detach()});
    return {context->needs_input_grad(0) ? grads[0].mm(saved[1]) : at::Tensor(), at::Tensor(), at::Tensor()};
  }
};

// Capture records a user's operator unchanged, including its autograd formula.
TORCH_LIBRARY(plumbline_weight_work_test, m) { m.def("linear(Tensor x, Tensor weight, Tensor bias) -> Tensor"); }
TORCH_LIBRARY_IMPL(plumbline_weight_work_test, Autograd, m) {
  m.impl("linear", [](const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
    return LinearForInput::apply(x, weight, bias);
  });
}
TORCH_LIBRARY_IMPL(plumbline_weight_work_test, CPU, m) {
  m.impl("linear", [](const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
    return at::linear(x, weight, bias);
  });
}

void add_to_grad(const at::Tensor& parameter, const at::Tensor& grad) {
  at::Tensor& sum = parameter.mutable_grad();
  sum = sum.defined() ? sum + grad : grad;
}

/// Four linears in at least as many stages as ranks, with deferred weight gradients or without.
struct Linears : torch::nn::Module {
  Linears(int stages, bool own) : stages(stages), own(own) {
    for (int i = 0; i < 4; ++i) layers.push_back(register_module("l" + std::to_string(i), std::make_shared<Layer>(i)));
  }
  at::Tensor linear(const at::Tensor& x, const Layer& layer) const {
    if (!own) return at::linear(x, layer.weight, layer.bias);
    static const auto op = c10::Dispatcher::singleton()
                               .findSchemaOrThrow("plumbline_weight_work_test::linear", "")
                               .typed<at::Tensor(const at::Tensor&, const at::Tensor&, const at::Tensor&)>();
    return op.call(x, layer.weight, layer.bias);
  }
  Tensors forward(const Tensors& in) const {
    at::Tensor h = in[0];
    for (int i = 0; i < 4; ++i) {
      if (i > 0 && i * stages / 4 != (i - 1) * stages / 4) capture::pipe_split();
      h = at::gelu(linear(h, *layers[i]));
    }
    return {h};
  }
  int stages;
  bool own;
  std::vector<std::shared_ptr<Layer>> layers;
};

/// How often weight_work was called for a stage and a micro-batch, and the order in which its results ran.
struct Asked {
  std::map<std::pair<int, int>, int> times;
  std::vector<std::string> order;
};

testing::NamedTensors gradients_of(const schedule::Schedule& schedule, bool own, Asked* asked = nullptr) {
  constexpr int kRows = 11;
  std::mutex mutex;
  testing::NamedTensors gradients;
  with_ranks(static_cast<int>(schedule.ranks.size()), [&](transport::Transport& transport) {
    at::set_num_threads(1);
    queue.clear();
    Linears model(schedule.stages, own);
    engine::EngineOptions options;
    options.input_names = {"x"};
    options.input_chunks = {microbatch::ChunkSpec{}};
    options.loss = mean_square;
    if (own)
      options.weight_work = [&](int stage, int microbatch) -> engine::WeightWork {
        if (asked) {
          const std::lock_guard<std::mutex> lock(mutex);
          ++asked->times[{stage, microbatch}];
        }
        return [&, stage, microbatch, mine = std::exchange(queue, {})] {
          if (asked) {
            const std::lock_guard<std::mutex> lock(mutex);
            asked->order.push_back(std::to_string(stage) + "W" + std::to_string(microbatch));
          }
          for (const Queued& item : mine) {
            EXPECT_FALSE(at::GradMode::is_enabled());
            add_to_grad(item.weight, item.grad.t().mm(item.x));
            add_to_grad(item.bias, item.grad.sum(0));
          }
        };
      };
    const engine::PipeSource source = [&](bool training, const Tensors& inputs) {
      const capture::ForwardFunction forward = [&](const Tensors& in) { return model.forward(in); };
      return split::make_pipe({&model, forward, {"x"}}, inputs, training, {});
    };
    engine::Engine engine(transport, schedule, source, options);
    engine.train({batch_of("mlp", kRows)}, target_of("mlp", kRows));
    EXPECT_TRUE(queue.empty());
    const std::lock_guard<std::mutex> lock(mutex);
    for (const auto& [stage, state] : engine.states())
      for (const auto& [name, tensor] : state.parameters) gradients[name] = tensor.grad();
  });
  return gradients;
}

std::vector<schedule::Schedule> schedules() {
  const schedule::Schedule one_f_one_b = schedule::make_schedule("1f1b", 4, 5), two_a_rank = placed({0, 1, 1, 0}, 2, 5);
  return {one_f_one_b,
          two_a_rank,
          schedule::make_schedule("gpipe", 1, 5),
          halved(in_turns(4, 5, [](int r) { return 3 - r; }), {.name = "like ZB-H1", .lag = [](int r) { return r; }}),
          halved(in_turns(2, 5, [](int r) { return 2 - 2 * r; }), {.name = "like ZB-H2"}),
          halved(two_a_rank, {.name = "descending", .descending = true}),
          halved(one_f_one_b, {.name = "mixed", .lag = [](int) { return 1; }, .whole_microbatches = {1, 4}})};
}

TEST(WeightWork, GivesTheBitsOfThePlainLinear) {
  for (const schedule::Schedule& schedule : schedules()) {
    SCOPED_TRACE(schedule.name);
    Linears model(schedule.stages, /*own=*/false);
    at::set_num_threads(1);
    const Tensors xs = batch_of("mlp", 11).tensor_split(5), targets = target_of("mlp", 11).tensor_split(5);
    for (int m : accumulation_order(schedule)) mean_square(model.forward({xs[m]}), targets[m]).backward();
    testing::NamedTensors expected;
    for (const auto& item : model.named_parameters()) expected[item.key()] = item.value().grad() / 5;
    expect_same(gradients_of(schedule, /*own=*/true), expected, "gradient");
    expect_same(gradients_of(schedule, /*own=*/false), expected, "gradient of the plain linear");
    if (HasFatalFailure()) return;
  }
}

TEST(WeightWork, IsAskedForOnceForEachStageAndMicrobatch) {
  for (const schedule::Schedule& schedule : schedules()) {
    SCOPED_TRACE(schedule.name);
    std::map<std::pair<int, int>, int> once;
    for (int stage = 0; stage < schedule.stages; ++stage)
      for (int m = 0; m < 5; ++m) once[{stage, m}] = 1;
    Asked asked;
    gradients_of(schedule, /*own=*/true, &asked);
    EXPECT_EQ(asked.times, once);
  }
}

TEST(WeightWork, IsDoneInTheB_OrKeptForTheW) {
  Asked asked;
  gradients_of(halved(placed({0, 0}, 1, 3), {.descending = true, .whole_microbatches = {1}}), /*own=*/true, &asked);
  EXPECT_EQ(asked.order, (std::vector<std::string>{"1W1", "0W1", "0W2", "0W0", "1W2", "1W0"}));
}

TEST(WeightWork, NoneIsGoodToo) {
  // Without weight work the backward is the full backward of the plain linear.
  const schedule::Schedule schedule = halved(schedule::make_schedule("1f1b", 2, 3), {});
  const at::Tensor x = batch_of("mlp", 6), target = target_of("mlp", 6);
  Fleet fleet("mlp", schedule);
  fleet.options.weight_work = [](int, int) { return engine::WeightWork(); };
  expect_same(fleet.train(x, target), Oracle("mlp", 2, 3).train(x, target));
}

TEST(WeightWork, IsNotAskedForWhereTheLossDoesNotDependOnTheStage) {
  for (const schedule::Schedule& schedule : {placed({0, 0, 0, 0}, 1, 1), halved(placed({0, 0, 0, 0}, 1, 1), {})}) {
    std::vector<int> stages;
    Fleet fleet("two outputs", schedule);
    fleet.options.loss = [](const Tensors& outputs, const at::Tensor& target) {
      return at::mse_loss(outputs[1], target);  // made by stage 1, forwarded by stage 3
    };
    fleet.split.loss_outputs = std::vector<int>{1};
    fleet.options.weight_work = [&](int stage, int) {
      stages.push_back(stage);
      return engine::WeightWork();
    };
    fleet.train(batch_of("mlp", 2), target_of("mlp", 2));
    EXPECT_EQ(stages, (std::vector<int>{3, 1, 0}));
  }
}

/// A linear in the first stage; in the second stage two parameters are added to its output through views, so that
/// autograd gives all three views of one gradient.
struct SumOfViews : torch::nn::Module {
  SumOfViews()
      : linear(register_module("linear", std::make_shared<Layer>(0))),
        a(register_parameter("a", waves({2, kWidth}, 1))),
        b(register_parameter("b", waves({2, kWidth}, 2))) {}
  Tensors forward(const Tensors& in) const {
    const at::Tensor h = linear->forward(in[0]);
    capture::pipe_split();
    return {(h.view({-1}) + a.view({-1}) + b.view({-1})).view({-1, kWidth})};
  }
  std::shared_ptr<Layer> linear;
  at::Tensor a, b;
};

/// After two micro-batches on one rank; the weight work of the second stage adds `added` to the gradient of `a`.
testing::NamedTensors gradients_of_views(const schedule::Schedule& schedule, double added) {
  testing::NamedTensors gradients;
  with_ranks(1, [&](transport::Transport& transport) {
    at::set_num_threads(1);
    SumOfViews model;
    engine::EngineOptions options;
    options.input_names = {"x"};
    options.input_chunks = {microbatch::ChunkSpec{}};
    options.loss = mean_square;
    options.weight_work = [&](int stage, int) -> engine::WeightWork {
      if (stage == 0) return {};
      return [&] { model.a.mutable_grad().add_(added); };
    };
    const engine::PipeSource source = [&](bool training, const Tensors& inputs) {
      const capture::ForwardFunction forward = [&](const Tensors& in) { return model.forward(in); };
      return split::make_pipe({&model, forward, {"x"}}, inputs, training, {});
    };
    engine::Engine engine(transport, schedule, source, options);
    engine.train({batch_of("mlp", 4)}, target_of("mlp", 4));
    for (const auto& [stage, state] : engine.states())
      for (const auto& [name, tensor] : state.parameters) gradients[name] = tensor.grad();
  });
  return gradients;
}

/// One module for each micro-batch: a second backward of plain autograd would add to the shared memory, too.
testing::NamedTensors plain_gradients_of_views(double added) {
  at::set_num_threads(1);
  testing::NamedTensors sums;
  const Tensors xs = batch_of("mlp", 4).tensor_split(2), targets = target_of("mlp", 4).tensor_split(2);
  for (int m = 0; m < 2; ++m) {
    SumOfViews model;
    mean_square(model.forward({xs[m]}), targets[m]).backward();
    for (const auto& item : model.named_parameters()) {
      at::Tensor& sum = sums[item.key()];
      sum = sum.defined() ? sum + item.value().grad() : item.value().grad();
      if (item.key() == "a") sum = sum + added;
    }
  }
  for (auto& [name, sum] : sums) sum = sum / 2;
  return sums;
}

TEST(WeightWork, GradientsThatAutogradGivesOneMemoryAreSeparatedInAnI) {
  using enum schedule::ActionType;
  schedule::Schedule schedule{"all I before the W", 2, 2, {0, 0}, {}};
  // The gradient that the I of stage 1 returns is read only after the next I of that stage.
  schedule.ranks.push_back({{0, F, 0},
                            {0, F, 1},
                            {1, F, 0},
                            {1, F, 1},
                            {1, I, 0},
                            {1, I, 1},
                            {0, I, 0},
                            {0, I, 1},
                            {1, W, 0},
                            {1, W, 1},
                            {0, W, 0},
                            {0, W, 1}});
  expect_same(gradients_of_views(schedule, 0), plain_gradients_of_views(0), "gradient");
}

TEST(WeightWork, GradientsThatAutogradGivesOneMemoryAreSeparatedBeforeTheWorkOfAB) {
  expect_same(gradients_of_views(placed({0, 0}, 1, 2), 1), plain_gradients_of_views(1), "gradient");
}

TEST(WeightWork, ErrorsSayWhere) {
  for (const auto& [schedule, where] : {std::pair(placed({0, 0}, 1, 2), "position 6 (1B1)"),
                                        std::pair(halved(placed({0, 0}, 1, 2), {}), "position 11 (1W1)")}) {
    Fleet fleet("mlp", schedule);
    fleet.options.weight_work = [](int stage, int microbatch) -> engine::WeightWork {
      if (stage == 1 && microbatch == 1) return [] { throw std::runtime_error("no queue"); };
      return {};
    };
    try {
      fleet.train(batch_of("mlp", 4), target_of("mlp", 4));
      FAIL() << "no error";
    } catch (const Error& error) {
      EXPECT_EQ(error.what(), "rank 0, " + std::string(where) + ": stage 1, micro-batch 1: no queue");
    }
  }
}

}  // namespace
}  // namespace plumbline::testing
