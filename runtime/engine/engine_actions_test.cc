// What stands around an action: custom functions in its place, the times at which it was carried out.
#include <algorithm>
#include <atomic>

#include "runtime/engine/engine_test_models.h"
#include "runtime/schedule/csv.h"
#include "runtime/testing/refusal.h"

namespace plumbline::testing {
namespace {

const std::string kLowered =
    "0F0,0F1,0SEND_F0,0SEND_F1,0RECV_B0,0RECV_B1,0B0,0I1,0W1\n"
    "1RECV_F1,1RECV_F0,1F1,1F0,1B0,1I1,1SEND_B0,1SEND_B1,1W1\n";

/// Runs one step of "mlp" and compares it with plain autograd.
void expect_step(const Schedule& schedule, const std::function<void(EngineOptions&)>& change) {
  expect_like_oracle("mlp", schedule, 2 * schedule.microbatches, 1, change);
}

TEST(EngineTrace, HoldsEveryActionOnceInOrder) {
  const Schedule schedule = parse_csv(kLowered, "lowered");
  const at::Tensor x = batch_of("mlp", 4), target = target_of("mlp", 4);
  Fleet fleet("mlp", schedule);
  fleet.options.trace = true;
  std::vector<std::vector<TimedAction>> of_rank(2);
  fleet.run([&](Engine& engine, int rank) {
    for (int step = 0; step < 2; ++step) {
      const StepResult result = engine.train({x}, target);
      std::vector<Action> actions;
      double time = result.times.begin;
      for (const TimedAction& timed : result.trace) {
        actions.push_back(timed.action);
        EXPECT_LE(time, timed.begin) << to_string(timed.action);
        EXPECT_LE(timed.begin, timed.end) << to_string(timed.action);
        time = timed.end;
      }
      EXPECT_LE(time, result.times.end);
      EXPECT_EQ(actions, schedule.ranks[rank]);
      of_rank[rank] = result.trace;
    }
  });
  // Nothing begins before what it needs from another rank has ended: the wait is no part of the action.
  const auto find = [&](int rank, const std::string& text) {
    return *std::find_if(of_rank[rank].begin(), of_rank[rank].end(),
                         [&](const TimedAction& timed) { return to_string(timed.action) == text; });
  };
  for (const std::string m : {"0", "1"}) {
    EXPECT_LE(find(0, "0F" + m).end, find(1, "1F" + m).begin);
    EXPECT_LE(find(1, (m == "0" ? "1B" : "1I") + m).end, find(0, (m == "0" ? "0B" : "0I") + m).begin);
  }
}

TEST(EngineTrace, IsEmptyUnlessAskedFor) {
  Fleet fleet("mlp", make_schedule("1f1b", 2, 2));
  fleet.run(
      [](Engine& engine, int) { EXPECT_TRUE(engine.train({batch_of("mlp", 4)}, target_of("mlp", 4)).trace.empty()); });
}

TEST(EngineTrace, EvaluationHasItsPartOfTheList) {
  Fleet fleet("mlp", parse_csv(kLowered, "lowered"));
  fleet.options.trace = true;
  fleet.run([](Engine& engine, int rank) {
    std::string text;
    for (const TimedAction& timed : engine.evaluate({batch_of("mlp", 4)}, target_of("mlp", 4)).trace)
      text += to_string(timed.action) + " ";
    EXPECT_EQ(text, rank == 0 ? "0F0 0F1 0SEND_F0 0SEND_F1 " : "1RECV_F1 1RECV_F0 1F1 1F0 ");
  });
}

TEST(CustomFunction, StandsAroundTheEnginesOwn) {
  // By kind of action: how often it was called.
  std::map<ActionType, std::atomic<int>> calls;
  for (ActionType type : {ActionType::F, ActionType::B, ActionType::I, ActionType::W}) calls[type] = 0;
  const Schedule schedule = parse_csv(kLowered, "lowered");
  expect_step(schedule, [&](EngineOptions& options) {
    for (ActionType type : {ActionType::F, ActionType::B, ActionType::I, ActionType::W})
      options.custom.of_type[type] = [&, type](std::span<const Action> actions, ActionContext& context) {
        ASSERT_EQ(actions.size(), 1u);
        const Action& action = actions[0];
        EXPECT_EQ(action.type, type);
        EXPECT_EQ(context.rank(), action.stage);
        EXPECT_EQ(context.schedule(), schedule);
        EXPECT_TRUE(context.training());
        expect_same(context.inputs(action.microbatch)[0], batch_of("mlp", 4).tensor_split(2)[action.microbatch], "x");
        expect_same(context.target(action.microbatch), target_of("mlp", 4).tensor_split(2)[action.microbatch],
                    "target");
        EXPECT_EQ(context.losses().size(), action.stage == 1 ? 2u : 0u);
        context.carry_out(action);
        EXPECT_TRUE(action.stage == 0 || context.losses()[action.microbatch].defined());
        ++calls[type];
      };
  });
  EXPECT_EQ(calls[ActionType::F], 4);
  EXPECT_EQ(calls[ActionType::B], 2);
  EXPECT_EQ(calls[ActionType::I], 2);
  EXPECT_EQ(calls[ActionType::W], 2);
}

/// Counts, and lets another do it.
struct Counting : StageRunner {
  explicit Counting(StageRunner& inner) : inner(inner) {}
  void forward(int m, std::span<const at::Tensor> inputs, Tensors& outputs) override {
    ++forwards;
    inner.forward(m, inputs, outputs);
  }
  void backward(int m, std::span<const at::Tensor> roots, std::span<const at::Tensor> grads,
                std::span<const at::Tensor> inputs, Tensors& input_grads) override {
    ++backwards;
    inner.backward(m, roots, grads, inputs, input_grads);
  }
  void backward_input(int m, std::span<const at::Tensor> roots, std::span<const at::Tensor> grads,
                      std::span<const at::Tensor> inputs, Tensors& input_grads) override {
    ++inputs_passed;
    inner.backward_input(m, roots, grads, inputs, input_grads);
  }
  void backward_weight(int m) override {
    ++weights;
    inner.backward_weight(m);
  }
  void drop_halves() noexcept override { inner.drop_halves(); }
  StageRunner& inner;
  int forwards = 0, backwards = 0, inputs_passed = 0, weights = 0;
};

TEST(CustomFunction, AnotherRunnerComputesInTheStagesPlace) {
  Counting* of_rank_1 = nullptr;
  std::unique_ptr<Counting> counting;
  expect_step(parse_csv(kLowered, "lowered"), [&](EngineOptions& options) {
    for (ActionType type : {ActionType::F, ActionType::B, ActionType::I, ActionType::W})
      options.custom.of_type[type] = [&](std::span<const Action> actions, ActionContext& context) {
        if (context.rank() == 0) return context.carry_out(actions[0]);
        if (!counting) counting = std::make_unique<Counting>(context.runner(1));
        of_rank_1 = counting.get();
        context.carry_out(actions[0], *counting);
      };
  });
  ASSERT_NE(of_rank_1, nullptr);
  EXPECT_EQ(of_rank_1->forwards, 2);
  EXPECT_EQ(of_rank_1->backwards, 1);
  EXPECT_EQ(of_rank_1->inputs_passed, 1);
  EXPECT_EQ(of_rank_1->weights, 1);
}

/// What comes of a step of two stages on one rank, 0F0 1F0 1B0 0B0, where `function` stands for B.
std::string failure_of(const CustomFunction& function) {
  Fleet fleet("mlp", placed({0, 0}, 1, 1));
  fleet.options.custom.of_type[ActionType::B] = function;
  return failure([&] { fleet.train(batch_of("mlp", 2), target_of("mlp", 2)); });
}

TEST(CustomFunction, CarriesOutWhatItWasGivenOnce) {
  const std::string where = "rank 0, position 2 (1B0): ";
  EXPECT_EQ(failure_of([](auto, ActionContext&) {}),
            where + "the custom function came to its end without having it carried out");
  EXPECT_EQ(failure_of([](auto actions, ActionContext& context) {
              context.carry_out(actions[0]);
              context.carry_out(actions[0]);
            }),
            where + "the custom function asks for 1B0 a second time");
  EXPECT_EQ(failure_of([](auto, ActionContext& context) { context.carry_out({0, ActionType::B, 0}); }),
            where + "the custom function asks for 0B0, which it was not given");
  EXPECT_EQ(failure_of([](auto, ActionContext&) { throw std::runtime_error("no kernel"); }), where + "no kernel");
  EXPECT_EQ(failure_of([](auto, ActionContext&) { throw 5; }), where + "an exception that is not a std::exception");
}

TEST(CustomFunction, TransfersAreTheEngines) {
  for (ActionType type : action_types()) {
    const bool transfer = is_send(type) || is_receive(type) || is_wait_send(type);
    Fleet fleet("mlp", placed({0}, 1, 1));
    fleet.options.custom.of_type[type] = [](auto actions, ActionContext& context) { context.carry_out(actions[0]); };
    const std::string text = refusal([&] { fleet.train(batch_of("mlp", 2), target_of("mlp", 2)); });
    const std::string reason = "rank 0: engine: " + std::string(to_string(type)) +
                               " cannot be replaced by a custom function; F, B, I, W, UNSHARD, RESHARD, REDUCE_GRAD, "
                               "WAIT_REDUCE_GRAD and groups can";
    EXPECT_EQ(text, transfer ? reason : "accepted");
  }
}

}  // namespace
}  // namespace plumbline::testing
