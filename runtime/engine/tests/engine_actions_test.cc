// Custom functions in place of actions, and the times at which actions were executed.
#include <algorithm>
#include <atomic>
#include <mutex>

#include "runtime/engine/stage/forwarding_runner.h"
#include "runtime/engine/testing/engine_test_models.h"
#include "runtime/schedule/text/csv.h"
#include "runtime/testing/refusal.h"
#include "runtime/transport/forwarding_transport.h"

namespace plumbline::testing {
namespace {

const std::string kLowered =
    "0F0,0F1,0SEND_F0,0SEND_F1,0RECV_B0,0RECV_B1,0B0,0I1,0W1\n"
    "1RECV_F1,1RECV_F0,1F1,1F0,1B0,1I1,1SEND_B0,1SEND_B1,1W1\n";

/// Runs one step of "mlp" and compares it with plain autograd.
void expect_step(const schedule::Schedule& schedule, const std::function<void(engine::EngineOptions&)>& change) {
  expect_like_oracle("mlp", schedule, 2 * schedule.microbatches, 1, change);
}

TEST(EngineTrace, HoldsEveryActionOnceInOrder) {
  const schedule::Schedule schedule = schedule::parse_csv(kLowered, "lowered");
  const at::Tensor x = batch_of("mlp", 4), target = target_of("mlp", 4);
  Fleet fleet("mlp", schedule);
  fleet.options.trace = true;
  std::vector<std::vector<schedule::TimedAction>> of_rank(2);
  fleet.run([&](engine::Engine& engine, int rank) {
    for (int step = 0; step < 2; ++step) {
      const engine::StepResult result = engine.train({x}, target);
      std::vector<schedule::Action> actions;
      double time = result.times.begin;
      for (const schedule::TimedAction& timed : result.trace) {
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
  // No action begins before its need from another rank has ended: the wait is no part of the action.
  const auto find = [&](int rank, const std::string& text) {
    return *std::find_if(of_rank[rank].begin(), of_rank[rank].end(),
                         [&](const schedule::TimedAction& timed) { return to_string(timed.action) == text; });
  };
  for (const std::string m : {"0", "1"}) {
    EXPECT_LE(find(0, "0F" + m).end, find(1, "1F" + m).begin);
    EXPECT_LE(find(1, (m == "0" ? "1B" : "1I") + m).end, find(0, (m == "0" ? "0B" : "0I") + m).begin);
  }
}

TEST(EngineTrace, IsEmptyUnlessAskedFor) {
  Fleet fleet("mlp", schedule::make_schedule("1f1b", 2, 2));
  fleet.run([](engine::Engine& engine, int) {
    EXPECT_TRUE(engine.train({batch_of("mlp", 4)}, target_of("mlp", 4)).trace.empty());
  });
}

TEST(EngineTrace, EvaluationHasItsPartOfTheList) {
  Fleet fleet("mlp", schedule::parse_csv(kLowered, "lowered"));
  fleet.options.trace = true;
  fleet.run([](engine::Engine& engine, int rank) {
    std::string text;
    for (const schedule::TimedAction& timed : engine.evaluate({batch_of("mlp", 4)}, target_of("mlp", 4)).trace)
      text += to_string(timed.action) + " ";
    EXPECT_EQ(text, rank == 0 ? "0F0 0F1 0SEND_F0 0SEND_F1 " : "1RECV_F1 1RECV_F0 1F1 1F0 ");
  });
}

TEST(CustomFunction, StandsAroundTheEnginesOwn) {
  // By kind of action: how often it was called.
  std::map<schedule::ActionType, std::atomic<int>> calls;
  for (schedule::ActionType type :
       {schedule::ActionType::F, schedule::ActionType::B, schedule::ActionType::I, schedule::ActionType::W})
    calls[type] = 0;
  const schedule::Schedule schedule = schedule::parse_csv(kLowered, "lowered");
  expect_step(schedule, [&](engine::EngineOptions& options) {
    for (schedule::ActionType type :
         {schedule::ActionType::F, schedule::ActionType::B, schedule::ActionType::I, schedule::ActionType::W})
      options.custom.of_type[type] = [&, type](std::span<const schedule::Action> actions,
                                               engine::ActionContext& context) {
        ASSERT_EQ(actions.size(), 1u);
        const schedule::Action& action = actions[0];
        EXPECT_EQ(action.type, type);
        EXPECT_EQ(context.rank(), action.stage);
        EXPECT_EQ(context.schedule(), schedule);
        EXPECT_TRUE(context.training());
        expect_same(context.inputs(action.microbatch)[0], batch_of("mlp", 4).tensor_split(2)[action.microbatch], "x");
        expect_same(context.targets(action.microbatch).one(), target_of("mlp", 4).tensor_split(2)[action.microbatch],
                    "target");
        EXPECT_EQ(context.losses().size(), action.stage == 1 ? 2u : 0u);
        context.execute(action);
        EXPECT_TRUE(action.stage == 0 || context.losses()[action.microbatch].defined());
        ++calls[type];
      };
  });
  EXPECT_EQ(calls[schedule::ActionType::F], 4);
  EXPECT_EQ(calls[schedule::ActionType::B], 2);
  EXPECT_EQ(calls[schedule::ActionType::I], 2);
  EXPECT_EQ(calls[schedule::ActionType::W], 2);
}

/// Counts the calls and forwards them.
struct Counting : engine::StageRunner {
  explicit Counting(engine::StageRunner& inner) : inner(inner) {}
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
  engine::StageRunner& inner;
  int forwards = 0, backwards = 0, inputs_passed = 0, weights = 0;
};

TEST(CustomFunction, AnotherRunnerComputesInTheStagesPlace) {
  Counting* of_rank_1 = nullptr;
  std::unique_ptr<Counting> counting;
  expect_step(schedule::parse_csv(kLowered, "lowered"), [&](engine::EngineOptions& options) {
    for (schedule::ActionType type :
         {schedule::ActionType::F, schedule::ActionType::B, schedule::ActionType::I, schedule::ActionType::W})
      options.custom.of_type[type] = [&](std::span<const schedule::Action> actions, engine::ActionContext& context) {
        if (context.rank() == 0) return context.execute(actions[0]);
        if (!counting) counting = std::make_unique<Counting>(context.runner(1));
        for (const int other : {0, 2})
          EXPECT_EQ(testing::failure([&] { context.runner(other); }),
                    "a custom function requests the runner of stage " + std::to_string(other) +
                        ", which rank 1 does not execute; expected one of its stages: 1");
        of_rank_1 = counting.get();
        context.execute(actions[0], *counting);
      };
  });
  ASSERT_NE(of_rank_1, nullptr);
  EXPECT_EQ(of_rank_1->forwards, 2);
  EXPECT_EQ(of_rank_1->backwards, 1);
  EXPECT_EQ(of_rank_1->inputs_passed, 1);
  EXPECT_EQ(of_rank_1->weights, 1);
}

// 1F1B on two ranks, with groups in the middle.
const std::string kGroups =
    "0F0,0F1,(0F2;0B0)OVERLAP_F_B,0B1,0B2\n"
    "1F0,(1F1;1B0)OVERLAP_F_B,(1F2;1B1)OVERLAP_F_B,1B2\n";

TEST(CustomFunction, OfAGroupStandsForAllOfIt) {
  // PyTorch's test_custom_function_callback: both kinds of function, and their numbers of calls.
  for (bool descending : {false, true}) {
    std::atomic<int> forwards = 0, groups = 0;
    expect_step(schedule::parse_csv(kGroups, "groups"), [&](engine::EngineOptions& options) {
      options.custom.of_type[schedule::ActionType::F] = [&](auto actions, engine::ActionContext& context) {
        ++forwards;
        context.execute(actions[0]);
      };
      options.custom.group = [&](std::span<const schedule::Action> actions, engine::ActionContext& context) {
        ++groups;
        ASSERT_EQ(actions.size(), 2u);
        EXPECT_EQ(actions[0].type, schedule::ActionType::F);
        EXPECT_EQ(actions[1].type, schedule::ActionType::B);
        // The members do not need one another.
        for (int i : {0, 1}) context.execute(actions[descending ? 1 - i : i]);
      };
    });
    EXPECT_EQ(forwards, 3);
    EXPECT_EQ(groups, 3);
  }
}

TEST(CustomFunction, OfAKindIsCalledForTheMembersOfAGroupWithoutOne) {
  std::atomic<int> forwards = 0;
  expect_step(schedule::parse_csv(kGroups, "groups"), [&](engine::EngineOptions& options) {
    options.custom.of_type[schedule::ActionType::F] = [&](auto actions, engine::ActionContext& context) {
      ++forwards;
      ASSERT_EQ(actions.size(), 1u);
      context.execute(actions[0]);
    };
  });
  EXPECT_EQ(forwards, 6);
}

TEST(CustomFunction, OfAGroupFailsAtTheMember) {
  const auto failure_with = [](const engine::CustomFunction& function) {
    Fleet fleet("mlp", schedule::parse_csv("0F0,0F1,(0B0;0B1)OVERLAP_F_B\n", "groups"));
    fleet.options.custom.group = function;
    return failure([&] { fleet.train(batch_of("mlp", 4), target_of("mlp", 4)); });
  };
  EXPECT_EQ(failure_with([](auto actions, engine::ActionContext& context) { context.execute(actions[0]); }),
            "rank 0, position 3 (0B1): the custom function ended without executing it");
  EXPECT_EQ(failure_with([](auto, engine::ActionContext&) { throw std::runtime_error("no"); }),
            "rank 0, position 2 (0B0): no");
}

TEST(EngineTrace, MembersOfAGroupHaveTimesOfTheirOwn) {
  for (bool custom : {false, true}) {
    Fleet fleet("mlp", schedule::parse_csv("0F0,0F1,(0B0;0B1)OVERLAP_F_B\n", "groups"));
    fleet.options.trace = true;
    if (custom)
      fleet.options.custom.group = [](auto actions, engine::ActionContext& context) {
        for (const schedule::Action& action : actions) context.execute(action);
      };
    fleet.run([](engine::Engine& engine, int) {
      const std::vector<schedule::TimedAction> trace = engine.train({batch_of("mlp", 4)}, target_of("mlp", 4)).trace;
      ASSERT_EQ(trace.size(), 4u);
      EXPECT_EQ(trace[2].action, (schedule::Action{0, schedule::ActionType::B, 0, /*overlaps_next=*/true}));
      EXPECT_EQ(trace[3].action, (schedule::Action{0, schedule::ActionType::B, 1}));
      EXPECT_LE(trace[2].end, trace[3].begin);
    });
  }
}

TEST(CustomFunction, WholeStageActionsAreForIt) {
  const schedule::Schedule schedule = schedule::parse_csv(
      "0UNSHARD,0F0,0F1,0SEND_F0,0SEND_F1,0RECV_B0,0RECV_B1,0B0,0B1,0REDUCE_GRAD,0WAIT_REDUCE_GRAD,0RESHARD\n"
      "1UNSHARD,1RECV_F0,1RECV_F1,1F0,1RESHARD,1UNSHARD,1F1,1B0,1B1,1RESHARD,1REDUCE_GRAD,1SEND_B0,1SEND_B1\n",
      "whole stages");
  expect_step(schedule, {});  // without a function they do nothing
  std::mutex mutex;
  std::map<int, std::string> called;
  expect_step(schedule, [&](engine::EngineOptions& options) {
    for (schedule::ActionType type : {schedule::ActionType::UNSHARD, schedule::ActionType::RESHARD,
                                      schedule::ActionType::REDUCE_GRAD, schedule::ActionType::WAIT_REDUCE_GRAD})
      options.custom.of_type[type] = [&](auto actions, engine::ActionContext& context) {
        const std::lock_guard<std::mutex> lock(mutex);
        called[context.rank()] += to_string(actions[0]) + " ";
      };
  });
  EXPECT_EQ(called[0], "0UNSHARD 0REDUCE_GRAD 0WAIT_REDUCE_GRAD 0RESHARD ");
  EXPECT_EQ(called[1], "1UNSHARD 1RESHARD 1UNSHARD 1RESHARD 1REDUCE_GRAD ");
}

/// Records which sends begin and which are awaited, by handle; no send completes without a wait. Ignores sends with
/// reserved tags, those of the comparison of shapes.
class SendLog : public transport::ForwardingTransport {
 public:
  using transport::ForwardingTransport::ForwardingTransport;
  transport::Request isend(const void* data, size_t bytes, int peer, int64_t tag) override {
    const transport::Request request = inner_.isend(data, bytes, peer, tag);
    if (tag < 0) return request;
    text += "send" + std::to_string(sends_.size()) + " ";
    sends_.push_back(request);
    return {static_cast<uint32_t>(sends_.size() - 1), kOurs};
  }
  bool test(transport::Request& request) override { return request.empty(); }
  void wait(transport::Request& request, const transport::Deadline& deadline,
            const transport::WaitContext& context) override {
    if (request.generation() != kOurs) return inner_.wait(request, deadline, context);
    text += "wait" + std::to_string(request.slot()) + " ";
    inner_.wait(sends_[request.slot()], deadline, context);
    request = {};
  }

  std::string text;

 private:
  static constexpr uint32_t kOurs = UINT32_MAX;

  std::vector<transport::Request> sends_;
};

TEST(EngineSends, AreWaitedForWhereTheScheduleSays) {
  const std::string rank_1 = "1RECV_F0,1RECV_F1,1RECV_F2,1F0,1F1,1F2,1B0,1SEND_B0,1B1,1SEND_B1,1B2,1SEND_B2\n";
  const std::string backwards = ",0RECV_B0,0RECV_B1,0RECV_B2,0B0,0B1,0B2\n";
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"0F0,0SEND_F0,0F1,0SEND_F1,0F2,0SEND_F2", "send0 send1 send2 wait0 wait1 wait2 "},
      {"0F0,0SEND_F0,0WAIT_SEND_F0,0F1,0SEND_F1,0F2,0SEND_F2", "send0 wait0 send1 send2 wait1 wait2 "},
      {"0F0,0SEND_F0,0F1,0SEND_F1,0WAIT_SEND_F1,0F2,0SEND_F2,0WAIT_SEND_F0", "send0 send1 wait1 send2 wait0 wait2 "}};
  for (const auto& [forwards, expected] : cases) {
    SCOPED_TRACE(forwards);
    const schedule::Schedule schedule = schedule::parse_csv(forwards + backwards + rank_1, "waits");
    expect_step(schedule, {});
    Fleet fleet("mlp", schedule);
    with_ranks(2, [&, expected = expected](transport::Transport& transport) {
      SendLog log(transport);
      engine::Engine engine(log, schedule, fleet.source(transport.rank()), fleet.options);
      engine.evaluate({batch_of("mlp", 6)}, target_of("mlp", 6));
      EXPECT_EQ(log.text, transport.rank() == 0 ? expected : "");
    });
  }
}

/// The result of a step of two stages on one rank, 0F0 1F0 1B0 0B0, where `function` replaces B.
std::string failure_of(const engine::CustomFunction& function) {
  Fleet fleet("mlp", placed({0, 0}, 1, 1));
  fleet.options.custom.of_type[schedule::ActionType::B] = function;
  return failure([&] { fleet.train(batch_of("mlp", 2), target_of("mlp", 2)); });
}

TEST(CustomFunction, CarriesOutWhatItWasGivenOnce) {
  const std::string where = "rank 0, position 2 (1B0): ";
  EXPECT_EQ(failure_of([](auto, engine::ActionContext&) {}), where + "the custom function ended without executing it");
  EXPECT_EQ(failure_of([](auto actions, engine::ActionContext& context) {
              context.execute(actions[0]);
              context.execute(actions[0]);
            }),
            where + "the custom function asks for 1B0 a second time");
  EXPECT_EQ(failure_of([](auto, engine::ActionContext& context) { context.execute({0, schedule::ActionType::B, 0}); }),
            where + "the custom function asks for 0B0, which it was not given");
  EXPECT_EQ(failure_of([](auto, engine::ActionContext&) { throw std::runtime_error("no kernel"); }),
            where + "no kernel");
  EXPECT_EQ(failure_of([](auto, engine::ActionContext&) { throw 5; }),
            where + "an exception that is not a std::exception");
}

/// Fails in the backward of micro-batch 1.
struct FailsOnce : engine::ForwardingRunner {
  using ForwardingRunner::ForwardingRunner;
  void backward(int m, std::span<const at::Tensor> roots, std::span<const at::Tensor> grads,
                std::span<const at::Tensor> inputs, Tensors& input_grads) override {
    if (m == 1) throw std::runtime_error("no memory");
    ForwardingRunner::backward(m, roots, grads, inputs, input_grads);
  }
};

TEST(CustomFunction, TheStepFailsAlsoIfItCatchesTheError) {
  const auto failure_with = [](const std::string& csv, const std::function<void(engine::CustomFunctions&)>& replace) {
    Fleet fleet("mlp", schedule::parse_csv(csv, "one stage"));
    fleet.options.decorate = [](int, const split::StageState&, std::unique_ptr<engine::StageRunner> runner) {
      return std::make_unique<FailsOnce>(std::move(runner));
    };
    replace(fleet.options.custom);
    return failure([&] { fleet.train(batch_of("mlp", 4), target_of("mlp", 4)); });
  };
  const auto try_to = [](const schedule::Action& action, engine::ActionContext& context) {
    return failure([&] { context.execute(action); });
  };
  const std::string reason = "stage 0, micro-batch 1: no memory", where = "rank 0, position 3 (0B1): ";
  const std::string single = failure_with("0F0,0F1,0B0,0B1\n", [&](engine::CustomFunctions& custom) {
    custom.of_type[schedule::ActionType::B] = [&](auto actions, engine::ActionContext& context) {
      try_to(actions[0], context);
    };
  });
  EXPECT_EQ(single, where + reason);
  const std::string group = failure_with("0F0,0F1,(0B0;0B1)OVERLAP_F_B\n", [&](engine::CustomFunctions& custom) {
    custom.group = [&](auto actions, engine::ActionContext& context) {
      EXPECT_EQ(try_to(actions[1], context), reason);
      EXPECT_EQ(try_to(actions[0], context), reason) << "nothing follows a failure";
    };
  });
  EXPECT_EQ(group, where + reason);
}

TEST(CustomFunction, TransfersAreTheEngines) {
  for (schedule::ActionType type : schedule::action_types()) {
    const bool transfer = schedule::is_send(type) || schedule::is_receive(type) || schedule::is_wait_send(type) ||
                          type == schedule::ActionType::OFFLOAD || type == schedule::ActionType::RELOAD;
    Fleet fleet("mlp", placed({0}, 1, 1));
    fleet.options.custom.of_type[type] = [](auto actions, engine::ActionContext& context) {
      context.execute(actions[0]);
    };
    const std::string text = refusal([&] { fleet.train(batch_of("mlp", 2), target_of("mlp", 2)); });
    const std::string reason = "rank 0: engine: " + std::string(to_string(type)) +
                               " cannot be replaced by a custom function; F, B, I, W, UNSHARD, RESHARD, REDUCE_GRAD, "
                               "WAIT_REDUCE_GRAD and groups can";
    EXPECT_EQ(text, transfer ? reason : "accepted");
  }
}

}  // namespace
}  // namespace plumbline::testing
