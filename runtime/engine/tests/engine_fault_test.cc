// Errors: each is raised on the right rank with the right text, no rank hangs, and gradients are as before the step.
#include <algorithm>
#include <atomic>

#include "runtime/engine/stage/forwarding_runner.h"
#include "runtime/engine/testing/engine_test_models.h"
#include "runtime/engine/testing/halved_schedules.h"
#include "runtime/error.h"
#include "runtime/schedule/text/csv.h"

namespace plumbline::testing {
namespace {

/// Runs a hook after the stage's own forward or backward.
struct Around : engine::ForwardingRunner {
  using ForwardingRunner::ForwardingRunner;
  void forward(int microbatch, std::span<const at::Tensor> inputs, Tensors& outputs) override {
    ForwardingRunner::forward(microbatch, inputs, outputs);
    if (after_forward) after_forward(microbatch, outputs);
  }
  void backward(int microbatch, std::span<const at::Tensor> roots, std::span<const at::Tensor> root_grads,
                std::span<const at::Tensor> inputs, Tensors& input_grads) override {
    ForwardingRunner::backward(microbatch, roots, root_grads, inputs, input_grads);
    if (after_backward) after_backward(microbatch, input_grads);
  }
  void backward_input(int microbatch, std::span<const at::Tensor> roots, std::span<const at::Tensor> root_grads,
                      std::span<const at::Tensor> inputs, Tensors& input_grads) override {
    ForwardingRunner::backward_input(microbatch, roots, root_grads, inputs, input_grads);
    if (after_input) after_input(microbatch, input_grads);
  }
  void backward_weight(int microbatch) override {
    ForwardingRunner::backward_weight(microbatch);
    if (after_weight) after_weight(microbatch);
  }
  std::function<void(int, Tensors&)> after_forward, after_backward, after_input;
  std::function<void(int)> after_weight;
};

using FaultChange = std::function<void(int stage, Around&)>;

auto around(const FaultChange& change) {
  return [change](int stage, const split::StageState&, std::unique_ptr<engine::StageRunner> runner) {
    auto wrapped = std::make_unique<Around>(std::move(runner));
    change(stage, *wrapped);
    return wrapped;
  };
}

/// The text of the E that `body` throws; anything else fails the test.
template <class E>
std::string error_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const E& error) {
    if (typeid(error) == typeid(E)) return error.what();
    ADD_FAILURE() << "another type of error: " << error.what();
    return error.what();
  } catch (const std::exception& error) {
    ADD_FAILURE() << "another error: " << error.what();
    return error.what();
  }
  ADD_FAILURE() << "no error";
  return "";
}

void expect_contains(const std::string& text, std::initializer_list<const char*> parts) {
  for (const char* part : parts) EXPECT_NE(text.find(part), std::string::npos) << "no '" << part << "' in: " << text;
}

/// A successful step, then one in which `broken` is set; the first step's gradients must survive on every rank.
template <class E>
std::string fails_in_second_step(Fleet& fleet, const std::string& kind, bool& broken) {
  const at::Tensor x = batch_of(kind, 6), target = target_of(kind, 6);
  std::vector<Tensors> before(fleet.nets.size());
  std::vector<Tensors> after(fleet.nets.size());
  std::atomic<int> ended = 0;
  const std::string text = error_of<E>([&] {
    fleet.run([&](engine::Engine& engine, int rank) {
      const auto gradients = [&](Tensors& list) {
        for (const auto& [stage, state] : engine.states())
          for (const auto& [name, tensor] : state.parameters)
            list.push_back(tensor.grad().defined() ? tensor.grad().clone() : at::Tensor());
      };
      engine.train({x}, target);
      gradients(before[rank]);
      // The first rank to finish the successful step must not break another's.
      if (++ended == static_cast<int>(fleet.nets.size())) broken = true, ended.notify_all();
      for (int n = ended; n < static_cast<int>(fleet.nets.size()); n = ended) ended.wait(n);
      try {
        engine.train({x}, target);
        after[rank] = before[rank];  // it had finished its part when the other one failed
      } catch (...) {
        gradients(after[rank]);
        throw;
      }
    });
  });
  for (size_t r = 0; r < before.size(); ++r) expect_same(after[r], before[r], "gradient on rank " + std::to_string(r));
  return text;
}

/// The error begins with its position, and ends with what was thrown, of which autograd makes a sentence of its own
/// (`said`). With one rank there are no transfers, and positions are those of the schedule.
void expect_fire(const std::string& text, const schedule::Schedule& schedule, const schedule::Action& action,
                 const std::string& said = "the disk is on fire") {
  const int rank = schedule.rank_of(action.stage, action.microbatch);
  std::string start = "rank " + std::to_string(rank) + ", position ";
  if (schedule.ranks.size() == 1) {
    const auto& actions = schedule.ranks[0];
    start += std::to_string(std::find(actions.begin(), actions.end(), action) - actions.begin()) + " ";
  }
  EXPECT_TRUE(text.starts_with(start)) << text;
  const std::string end = " (" + to_string(action) + "): stage " + std::to_string(action.stage) + ", micro-batch " +
                          std::to_string(action.microbatch) + ": " + said;
  EXPECT_TRUE(text.ends_with(end)) << text << "\nshould end with: " << end;
}

TEST(EngineFault, PositionsAreThoseOfTheLoweredList) {
  Fleet fleet("mlp",
              schedule::parse_csv("0F0,0SEND_F0,0F1,0SEND_F1,0F2,0SEND_F2,0RECV_B0,0B0,0RECV_B1,0B1,0RECV_B2,0B2\n"
                                  "1RECV_F0,1F0,1RECV_F1,1F1,1RECV_F2,1F2,1B0,1SEND_B0,1B1,1SEND_B1,1B2,1SEND_B2\n",
                                  "lowered"));
  fleet.options.decorate = around([](int stage, Around& runner) {
    if (stage == 0)
      runner.after_forward = [](int microbatch, Tensors&) {
        if (microbatch == 2) throw std::runtime_error("no");
      };
  });
  EXPECT_EQ(error_of<Error>([&] { fleet.train(batch_of("mlp", 6), target_of("mlp", 6)); }),
            "rank 0, position 4 (0F2): stage 0, micro-batch 2: no");
}

TEST(EngineFault, StageThatThrows) {
  for (bool backward : {false, true})
    for (int culprit : {0, 1, 2, 3})
      for (const schedule::Schedule& schedule :
           {schedule::make_schedule("1f1b", 4, 3), placed({0, 1, 1, 0}, 2, 3), placed({0, 0, 0, 0}, 1, 3)}) {
        SCOPED_TRACE("stage " + std::to_string(culprit) + (backward ? " backward " : " forward ") + schedule.name);
        bool broken = false;
        Fleet fleet("tied", schedule);
        fleet.options.decorate = around([&, culprit, backward](int stage, Around& runner) {
          const auto fail = [&broken](int microbatch, Tensors&) {
            if (broken && microbatch == 1) throw std::runtime_error("the disk is on fire");
          };
          if (stage == culprit) (backward ? runner.after_backward : runner.after_forward) = fail;
        });
        const std::string text = fails_in_second_step<Error>(fleet, "tied", broken);
        expect_fire(text, schedule, {culprit, backward ? schedule::ActionType::B : schedule::ActionType::F, 1});
      }
}

TEST(EngineFault, HookThatThrows) {
  constexpr int kLast = 3;  // whose backward is the first
  for (bool halves : {false, true})
    for (const schedule::Schedule& whole : {schedule::make_schedule("1f1b", 4, 3), placed({0, 1, 1, 0}, 2, 3)}) {
      const schedule::Schedule schedule = halves ? halved(whole, {.lag = [](int) { return 1; }}) : whole;
      SCOPED_TRACE(schedule.name + (halves ? " in halves" : ""));
      bool broken = false;
      Fleet fleet("tied", schedule);
      for (const at::Tensor& parameter : fleet.nets[schedule.rank_of(kLast, 0)]->parameters())
        parameter.register_hook([&broken](const at::Tensor& grad) {
          if (broken) throw std::runtime_error("the disk is on fire");
          return grad;
        });
      expect_fire(fails_in_second_step<Error>(fleet, "tied", broken), schedule,
                  {kLast, halves ? schedule::ActionType::W : schedule::ActionType::B, 0},
                  halves
                      ? "Failed to run the weight half of stage backward: the disk is on fire"
                      : "Failed to run stage backward: the disk is on fire; stage output: (f32[]*), output gradient: "
                        "(f32[]), input: (f32[2,3,6]*)");
    }
}

TEST(EngineFault, StageThatThrowsInAHalf) {
  for (bool weight : {false, true})
    for (int culprit : {0, 1, 2, 3})
      for (const schedule::Schedule& schedule :
           {halved(schedule::make_schedule("1f1b", 4, 3), {.lag = [](int) { return 1; }}),
            halved(placed({0, 1, 1, 0}, 2, 3), {}), halved(placed({0, 0, 0, 0}, 1, 3), {.whole_microbatches = {0}})}) {
        if (culprit == 0 && !weight) continue;  // the first stage's I does nothing
        SCOPED_TRACE("stage " + std::to_string(culprit) + (weight ? " weight " : " input ") + schedule.name);
        bool broken = false;
        Fleet fleet("tied", schedule);
        fleet.options.decorate = around([&, culprit, weight](int stage, Around& runner) {
          const auto fail = [&broken](int microbatch) {
            if (broken && microbatch == 1) throw std::runtime_error("the disk is on fire");
          };
          if (stage != culprit) return;
          if (weight) runner.after_weight = fail;
          (weight ? runner.after_backward : runner.after_input) = [fail](int microbatch, Tensors&) {
            fail(microbatch);
          };
        });
        expect_fire(fails_in_second_step<Error>(fleet, "tied", broken), schedule,
                    {culprit, weight ? schedule::ActionType::W : schedule::ActionType::I, 1});
      }
}

TEST(EngineFault, KernelThatFails) {
  // An index that is out of range only in the data of micro-batch 2.
  at::Tensor x = batch_of("tied", 6);
  x[5][0] = 100;
  Fleet fleet("tied", schedule::make_schedule("gpipe", 3, 3));
  fleet.split.loss_outputs.reset();
  const std::string text = error_of<Error>([&] { fleet.train(x, target_of("tied", 6)); });
  expect_contains(text, {"rank ", "embedding", "index out of range"});
}

TEST(EngineFault, StageThatMakesAnotherShape) {
  for (int culprit : {0, 2}) {
    bool broken = false;
    Fleet fleet("mlp", schedule::make_schedule("1f1b", 4, 3));
    fleet.options.decorate = around([&, culprit](int stage, Around& runner) {
      if (stage == culprit)
        runner.after_forward = [&](int microbatch, Tensors& outputs) {
          if (broken && microbatch == 1) outputs[0] = outputs[0].narrow(0, 0, 1);
        };
    });
    const std::string text = fails_in_second_step<Error>(fleet, "mlp", broken);
    const std::string place = "stage " + std::to_string(culprit) + ", micro-batch 1, value 'gelu";
    expect_contains(text, {place.c_str(), "made f32[1,6]", "expected f32[2,6]"});
  }
}

TEST(EngineFault, StageThatMakesAnotherDtypeOrNothing) {
  for (bool nothing : {false, true}) {
    bool broken = false;
    Fleet fleet("mlp", schedule::make_schedule("gpipe", 2, 3));
    fleet.options.decorate = around([&](int stage, Around& runner) {
      if (stage == 0)
        runner.after_forward = [&](int, Tensors& outputs) {
          if (broken) outputs[0] = nothing ? at::Tensor() : outputs[0].to(at::kDouble);
        };
    });
    const std::string text = fails_in_second_step<Error>(fleet, "mlp", broken);
    expect_contains(text, {"stage 0, micro-batch 0, value 'gelu", nothing ? "undefined" : "made f64[2,6]"});
    EXPECT_TRUE(text.ends_with("expected f32[2,6]")) << text;  // not because of its size
  }
}

TEST(EngineFault, ModelsThatDifferInShapeAreRefusedBeforeTheFirstMessage) {
  std::atomic<int> forwards = 0;
  const std::string text = error_of<Error>([&] {
    Fleet fleet("mlp", schedule::make_schedule("gpipe", 3, 2));
    fleet.options.decorate =
        around([&](int, Around& runner) { runner.after_forward = [&](int, Tensors&) { ++forwards; }; });
    fleet.run([&](engine::Engine& engine, int rank) {
      // Rows in place of a width: rank 2 expects a larger batch.
      const int64_t rows = rank == 2 ? 8 : 6;
      engine.train({batch_of("mlp", rows)}, target_of("mlp", rows));
    });
  });
  expect_contains(text, {"shapes disagree before the first message", "stage 0, micro-batch 0, value 'gelu",
                         "rank 0 has f32[3,6]", "rank 2 has f32[4,6]"});
  EXPECT_EQ(forwards, 0);
}

TEST(EngineFault, BatchesThatDifferOnceBothShapesAreKnown) {
  const std::string text = error_of<Error>([&] {
    Fleet fleet("mlp", schedule::make_schedule("gpipe", 2, 2));
    fleet.run([&](engine::Engine& engine, int rank) {
      const auto train = [&](int64_t rows) { engine.train({batch_of("mlp", rows)}, target_of("mlp", rows)); };
      train(6);
      train(8);
      train(rank == 0 ? 6 : 8);
    });
  });
  expect_contains(text, {"stage ", "micro-batch 0, ", "'gelu", "96", "72"});
}

TEST(EngineFault, RankThatNeverComes) {
  for (int steps_before : {0, 1}) {
    Fleet fleet("mlp", schedule::make_schedule("1f1b", 3, 2));
    fleet.options.timeout = std::chrono::seconds(2);
    const at::Tensor x = batch_of("mlp", 4), target = target_of("mlp", 4);
    const std::string text = error_of<TimeoutError>([&] {
      fleet.run([&](engine::Engine& engine, int rank) {
        for (int i = 0; i < steps_before + (rank == 1 ? 0 : 1); ++i) engine.train({x}, target);
      });
    });
    if (steps_before == 0)
      expect_contains(text, {"within 2 s", "to compare shapes before the first message"});
    else
      // Rank 0 waits for its gradient as long as rank 2 for its input: the first deadline to expire is reported.
      expect_contains(text, {text.find("rank 0") == 0 ? "(0B0)" : "(2F0)", "): no message from rank 1 within 2 s",
                             "stage ", "micro-batch 0, ", "'gelu", "f32[2,6]"});
  }
}

TEST(EngineFault, RanksEndInAnErrorWithoutWaitingForTheirDeadlines) {
  Fleet fleet("tied", schedule::make_schedule("1f1b", 4, 7));
  fleet.options.timeout = std::chrono::hours(24);
  fleet.options.decorate = around([&](int stage, Around& runner) {
    if (stage == 3) runner.after_backward = [](int, Tensors&) { throw std::runtime_error("no"); };
  });
  expect_contains(error_of<Error>([&] { fleet.train(batch_of("tied", 7), target_of("tied", 7)); }),
                  {"rank 3, position ", "stage 3, micro-batch ", ": no"});
}

TEST(EngineFault, RankGoesOnAfterItsOwnError) {
  // One rank alone: the transport is intact, so the engine must be as well. In halves, two first ones lack their second
  // when the error occurs.
  for (const schedule::Schedule& schedule : {placed({0, 0, 0, 0}, 1, 3), halved(placed({0, 0, 0, 0}, 1, 3), {})}) {
    SCOPED_TRACE(schedule.name);
    bool broken = false;
    Fleet fleet("tied", schedule);
    fleet.options.decorate = around([&](int stage, Around& runner) {
      if (stage == 2)
        runner.after_backward = runner.after_input = [&](int microbatch, Tensors&) {
          if (broken && microbatch == 2) throw std::runtime_error("once");
        };
    });
    const at::Tensor x = batch_of("tied", 6), target = target_of("tied", 6);
    Oracle oracle("tied", 4, 3);
    oracle.train(x, target);
    const Told theirs = oracle.train(x, target);
    Told ours;
    fleet.run([&](engine::Engine& engine, int) {
      engine.train({x}, target);
      broken = true;
      EXPECT_THROW(engine.train({x}, target), Error);
      broken = false;
      fleet.tell(ours, engine, engine.train({x}, target));
    });
    expect_same(ours, theirs);
  }
}

/// The error of one step on one rank for each stage of `schedule`.
std::string schedule_refusal(const schedule::Schedule& schedule, int stages,
                             const std::function<void(engine::EngineOptions&)>& change, const Tensors& inputs,
                             const at::Tensor& target) {
  Fleet fleet("mlp", schedule::make_schedule("gpipe", stages, 2));
  if (change) change(fleet.options);
  std::string text;
  with_ranks(stages, [&](transport::Transport& transport) {
    const std::string mine = error_of<InputError>([&] {
      engine::Engine engine(transport, schedule, fleet.source(transport.rank()), fleet.options);
      engine.train(inputs, target);
    });
    EXPECT_EQ(std::count(mine.begin(), mine.end(), '\n'), 0) << mine;
    if (transport.rank() == transport.size() - 1) text = mine;
  });
  return text;
}

TEST(EngineFault, WrongNumbersAreRefusedInOneLine) {
  const at::Tensor x = batch_of("mlp", 4), y = target_of("mlp", 4);
  const schedule::Schedule good = schedule::make_schedule("gpipe", 2, 2);
  schedule::Schedule none = good;
  none.microbatches = 0;
  schedule::Schedule misplaced = good;
  misplaced.rank_of_stage = {0, 5};
  expect_contains(schedule_refusal(schedule::make_schedule("gpipe", 3, 2), 2, {}, {x}, y),
                  {"schedule is for 3 ranks, there are 2"});
  expect_contains(schedule_refusal(placed({0, 1, 1}, 2, 2), 2, {}, {x}, y),
                  {"schedule has 3 stages", "split points make 2"});
  expect_contains(schedule_refusal(none, 2, {}, {x}, y), {"0 micro-batches; at least 1 is needed"});
  expect_contains(schedule_refusal(misplaced, 2, {}, {x}, y), {"rank 5"});
  expect_contains(schedule_refusal(good, 2, {}, {}, y), {"0 inputs, 1 names and 1 chunk specs"});
  expect_contains(schedule_refusal(good, 2, {}, {x, x}, y), {"2 inputs, 1 names"});
  expect_contains(schedule_refusal(good, 2, {}, {at::Tensor()}, y), {"'x'", "missing"});
  expect_contains(schedule_refusal(good, 2, {}, {x.narrow(0, 0, 1)}, y), {"input 'x' has 1 rows", "2 micro-batches"});
  expect_contains(schedule_refusal(good, 2, {}, {x}, y.narrow(0, 0, 1)), {"the target has 1 rows"});
  expect_contains(
      schedule_refusal(good, 2, [](engine::EngineOptions& o) { o.input_chunks[0].dim = 2; }, {x}, y), {"dimension 2"});
  const auto vector_loss = [](engine::EngineOptions& o) {
    o.loss = [](const Tensors& out, const at::Tensor& target) { return out[0] - target; };
  };
  expect_contains(schedule_refusal(schedule::make_schedule("gpipe", 1, 2), 1, vector_loss, {x}, y),
                  {"the loss of micro-batch 0 is f32[2,6]; a scalar is needed"});
}

}  // namespace
}  // namespace plumbline::testing
