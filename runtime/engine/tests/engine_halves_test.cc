// Schedules with I and W on the engine, compared bitwise with plain autograd over the whole module; and the state that
// the engine keeps between and after the halves.
#include <algorithm>
#include <numeric>
#include <sstream>

#include "runtime/backward/released_output.h"
#include "runtime/engine/stage/emulated_stage.h"
#include "runtime/engine/stage/forwarding_runner.h"
#include "runtime/engine/testing/engine_test_models.h"
#include "runtime/engine/testing/halved_schedules.h"
#include "runtime/schedule/text/csv.h"
#include "runtime/testing/parameter_name.h"

namespace plumbline::testing {
namespace {

constexpr int kHalvedMicrobatches = 5;

/// Stages alternate forwards and backwards after the warm-up of ZB-H1 (that of 1F1B) or ZB-H2 (twice as many).
schedule::Schedule like_zb_h1(int ranks) {
  return halved(in_turns(ranks, kHalvedMicrobatches, [=](int r) { return ranks - 1 - r; }),
                {.name = "like ZB-H1", .lag = [](int r) { return r; }});
}
schedule::Schedule like_zb_h2(int ranks) {
  return halved(in_turns(ranks, kHalvedMicrobatches, [=](int r) { return 2 * (ranks - 1 - r); }),
                {.name = "like ZB-H2", .lag = [](int r) { return 2 * r; }});
}

/// Every arrangement of halves, over `whole`.
std::vector<schedule::Schedule> in_halves(const schedule::Schedule& whole) {
  return {halved(whole, {.name = "W at once", .lag = [](int) { return 0; }}), halved(whole, {.name = "all W last"}),
          halved(whole, {.name = "W descending", .descending = true}),
          halved(whole, {.name = "mixed", .lag = [](int) { return 1; }, .whole_microbatches = {1, 4}}),
          halved(whole, {.name = "mixed, W last", .descending = true, .whole_microbatches = {0, 3}})};
}

std::vector<schedule::Schedule> on_ranks(int ranks) {
  std::vector<schedule::Schedule> all = in_halves(schedule::make_schedule("1f1b", ranks, kHalvedMicrobatches));
  all.push_back(like_zb_h1(ranks));
  all.push_back(like_zb_h2(ranks));
  return all;
}

/// Uneven micro-batches, so that two shapes are in flight at a time.
void expect_step_like_oracle(const std::string& kind, const schedule::Schedule& schedule,
                             const std::function<void(engine::EngineOptions&)>& change = {}) {
  SCOPED_TRACE(kind + ", " + schedule.name + ", " + std::to_string(schedule.ranks.size()) + " ranks, " +
               std::to_string(schedule.stages) + " stages");
  const int64_t rows = 2 * kHalvedMicrobatches + 1;
  const at::Tensor x = batch_of(kind, rows), target = target_of(kind, rows);
  Oracle oracle(kind, schedule.stages, schedule.microbatches);
  oracle.backward_order = accumulation_order(schedule);
  Fleet fleet(kind, schedule);
  oracle.seed = fleet.options.seed = 11;
  fleet.options.keep_strides = kind == "strided";
  if (change) change(fleet.options);
  expect_same(fleet.train(x, target), oracle.train(x, target));
}

class EveryKindInHalves : public ::testing::TestWithParam<const char*> {};

TEST_P(EveryKindInHalves, EqualsAutogradInTheOrderOfTheW) {
  for (int ranks : {1, 2, 4})
    for (const schedule::Schedule& schedule : on_ranks(ranks)) {
      expect_step_like_oracle(GetParam(), schedule);
      if (HasFatalFailure()) return;
    }
}

TEST_P(EveryKindInHalves, EqualsAutogradWithSeveralStagesOnARank) {
  for (const std::vector<int>& rank_of_stage : {std::vector{0, 1, 0, 1}, {0, 1, 1, 0}, {0, 0, 0, 0}})
    for (const schedule::Schedule& schedule : in_halves(placed(
             rank_of_stage, 1 + *std::max_element(rank_of_stage.begin(), rank_of_stage.end()), kHalvedMicrobatches))) {
      expect_step_like_oracle(GetParam(), schedule);
      if (HasFatalFailure()) return;
    }
}

TEST_P(EveryKindInHalves, GivesTheSameBitsWhenOutputsKeepTheirMemory) {
  for (const schedule::Schedule& schedule : {like_zb_h2(4), placed({0, 1, 1, 0}, 2, kHalvedMicrobatches)}) {
    expect_step_like_oracle(GetParam(), schedule,
                            [](engine::EngineOptions& options) { options.release_outputs = false; });
    if (HasFatalFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Engine, EveryKindInHalves,
                         ::testing::Values("mlp", "skip", "tied", "dropout", "batch norm", "two outputs", "integers",
                                           "frozen", "frozen early", "unused", "strided"),
                         testing::ParameterName());

TEST(EngineHalves, OrderOfTheWMattersToTheseNumbers) {
  const at::Tensor x = batch_of("mlp", 11), target = target_of("mlp", 11);
  Oracle ascending("mlp", 2, kHalvedMicrobatches), mixed("mlp", 2, kHalvedMicrobatches);
  mixed.backward_order = {0, 3, 4, 2, 1};
  EXPECT_FALSE(at::equal(ascending.train(x, target).gradients.at("l0.weight"),
                         mixed.train(x, target).gradients.at("l0.weight")));
}

TEST(EngineHalves, StepsAccumulateAndEvaluationBetweenChangesNothing) {
  for (const std::string kind : {"tied", "batch norm", "dropout"})
    for (const schedule::Schedule& schedule : {like_zb_h1(2), like_zb_h2(4)}) {
      SCOPED_TRACE(kind + " " + schedule.name);
      const at::Tensor x1 = batch_of(kind, 10), x2 = batch_of(kind, 11, 3.3);
      const at::Tensor target1 = target_of(kind, 10), target2 = target_of(kind, 11);
      Oracle oracle(kind, schedule.stages, kHalvedMicrobatches);
      const Told first = oracle.train(x1, target1), evaluated = oracle.evaluate(x2, target2),
                 second = oracle.train(x2, target2);
      Fleet fleet(kind, schedule);
      Told ours_first, ours_evaluated, ours_second;
      fleet.run([&](engine::Engine& engine, int) {
        fleet.tell(ours_first, engine, engine.train({x1}, target1));
        fleet.tell(ours_evaluated, engine, engine.evaluate({x2}, target2));
        fleet.tell(ours_second, engine, engine.train({x2}, target2));
      });
      expect_same(ours_first, first);
      expect_same(ours_evaluated.outputs, evaluated.outputs, "evaluation output");
      expect_same(ours_second, second);
      if (HasFatalFailure()) return;
    }
}

/// Records the calls of a stage, and may inspect them.
struct Listener : engine::ForwardingRunner {
  using ForwardingRunner::ForwardingRunner;
  void forward(int microbatch, std::span<const at::Tensor> inputs, Tensors& outputs) override {
    if (heard) heard("F", microbatch, {});
    ForwardingRunner::forward(microbatch, inputs, outputs);
    if (made) made(microbatch, outputs);
  }
  void backward(int microbatch, std::span<const at::Tensor> roots, std::span<const at::Tensor> root_grads,
                std::span<const at::Tensor> inputs, Tensors& input_grads) override {
    if (heard) heard("B", microbatch, roots);
    ForwardingRunner::backward(microbatch, roots, root_grads, inputs, input_grads);
  }
  void backward_input(int microbatch, std::span<const at::Tensor> roots, std::span<const at::Tensor> root_grads,
                      std::span<const at::Tensor> inputs, Tensors& input_grads) override {
    if (heard) heard("I", microbatch, roots);
    ForwardingRunner::backward_input(microbatch, roots, root_grads, inputs, input_grads);
  }
  void backward_weight(int microbatch) override {
    if (heard) heard("W", microbatch, {});
    ForwardingRunner::backward_weight(microbatch);
  }
  std::function<void(const char* what, int microbatch, std::span<const at::Tensor> roots)> heard;
  std::function<void(int microbatch, const Tensors& outputs)> made;
};

using Change = std::function<void(int stage, Listener&)>;

auto listening(const Change& change) {
  return [change](int stage, const split::StageState&, std::unique_ptr<engine::StageRunner> runner) {
    auto listener = std::make_unique<Listener>(std::move(runner));
    change(stage, *listener);
    return listener;
  };
}

/// The log of the observer's and the runner's calls on one rank, in words.
struct Tale : engine::EngineObserver {
  void on_forward(int, int, const std::string&, const at::Tensor&) override {}
  void on_backward(int stage, int microbatch, const std::string&, const at::Tensor&) override {
    text << stage << "grad" << microbatch << ' ';
  }
  void on_parameter_gradient(int stage, int microbatch, const std::string& name, const at::Tensor&) override {
    if (name.ends_with("weight")) text << name.substr(0, 2) << "@" << stage << "part" << microbatch << ' ';
  }
  std::ostringstream text;
};

std::string tale_of(const std::string& kind, const schedule::Schedule& schedule,
                    const std::function<void(Fleet&)>& change = {}) {
  Tale tale;
  Fleet fleet(kind, schedule);
  fleet.options.observer = &tale;
  fleet.options.decorate = listening([&](int stage, Listener& listener) {
    listener.heard = [&tale, stage](const std::string& what, int microbatch, auto&&) {
      if (what != "F") tale.text << stage << what << microbatch << ' ';
    };
  });
  if (change) change(fleet);
  fleet.train(batch_of(kind, 2 * schedule.microbatches), target_of(kind, 2 * schedule.microbatches));
  return tale.text.str();
}

TEST(EngineHalves, FirstStageLeavesEverythingToItsW) {
  EXPECT_EQ(tale_of("mlp", halved(placed({0, 0}, 1, 2), {})),
            "1I0 1grad0 1I1 1grad1 "
            "0B0 l0@0part0 l1@0part0 0B1 l0@0part1 l1@0part1 "
            "1W0 l2@1part0 l3@1part0 1W1 l2@1part1 l3@1part1 ");
}

TEST(EngineHalves, StageThatHandsBackNoGradientDoesSoToo) {
  // Layer 0, alone in stage 0, is frozen: no gradient goes there, and stage 1 returns none.
  EXPECT_EQ(tale_of("frozen early", halved(placed({0, 0, 0, 0}, 1, 1), {})),
            "3I0 3grad0 2I0 2grad0 1B0 l1@1part0 2W0 l2@2part0 3W0 l3@3part0 ");
}

TEST(EngineHalves, WholeAndHalvedBackwardsMix) {
  EXPECT_EQ(tale_of("mlp", halved(placed({0, 0}, 1, 2), {.lag = [](int) { return 0; }, .whole_microbatches = {1}})),
            "1I0 1grad0 1W0 l2@1part0 l3@1part0 0B0 l0@0part0 l1@0part0 "
            "1B1 1grad1 l2@1part1 l3@1part1 0B1 l0@0part1 l1@0part1 ");
}

TEST(EngineHalves, StageThatTheLossDoesNotNeedHasNothingToDo) {
  // The loss reads only the side output, which stage 1 makes: stage 3 forwards it. Stage 2 does not contribute, but
  // returns zeros for a value whose gradient comes through the side output.
  const engine::LossFunction of_side = [](const Tensors& outputs, const at::Tensor& target) {
    return at::mse_loss(outputs[1], target);
  };
  const schedule::Schedule schedule = halved(placed({0, 0, 0, 0}, 1, 1), {});
  const auto change = [&](Fleet& fleet) {
    fleet.options.loss = of_side;
    fleet.split.loss_outputs = std::vector<int>{1};
  };
  EXPECT_EQ(tale_of("two outputs", schedule, change),
            "3I0 3grad0 2grad0 1I0 1grad0 0B0 l0@0part0 1W0 au@1part0 l1@1part0 3W0 ");
  Oracle oracle("two outputs", 4, 1);
  oracle.loss = of_side;
  Fleet fleet("two outputs", schedule);
  change(fleet);
  const at::Tensor x = batch_of("mlp", 4), target = target_of("mlp", 4);
  expect_same(fleet.train(x, target), oracle.train(x, target));
}

TEST(EngineHalves, GradientsThatAccumulateShareNoMemory) {
  // Autograd makes one tensor for the input and both parameters of stage 1, which are behind views, and .grad takes
  // ownership of it. Stage 0 reads its gradients only after stage 1 has added the second micro-batch's to that.
  struct Views : torch::nn::Module {
    at::Tensor forward(const at::Tensor& x) {
      const at::Tensor h = x * scale;
      capture::pipe_split();
      return (h.view(-1) + (shift.view(-1) + lift.view(-1))).view({2, kWidth}).square();
    }
    at::Tensor scale = register_parameter("scale", waves({kWidth}, 1));
    at::Tensor shift = register_parameter("shift", waves({2, kWidth}, 2));
    at::Tensor lift = register_parameter("lift", waves({2, kWidth}, 3));
  };
  const at::Tensor x = waves({4, kWidth}, 0.1), target = waves({4, kWidth}, 2.5);
  Views uncut;
  // Not into .grad: plain autograd adds them in the one memory.
  const auto gradients = [&](int m) {
    const at::Tensor loss = mean_square({uncut.forward(x.narrow(0, 2 * m, 2))}, target.narrow(0, 2 * m, 2));
    return torch::autograd::grad({loss}, {uncut.scale, uncut.shift, uncut.lift});
  };
  const Tensors first = gradients(0), second = gradients(1);
  for (const char* rows : {"0F0,1F0,0F1,1F1,1B0,1B1,0B0,0B1", "0F0,1F0,0F1,1F1,1I0,1I1,1W0,1W1,0I0,0I1,0W0,0W1",
                           "0F0,1F0,0F1,1F1,1I0,1B1,1W0,0B0,0B1"}) {
    SCOPED_TRACE(rows);
    with_ranks(1, [&](transport::Transport& transport) {
      at::set_num_threads(1);
      Views model;
      const engine::PipeSource source = [&](bool training, const Tensors& inputs) {
        const capture::ForwardFunction forward = [&](const Tensors& in) { return Tensors{model.forward(in[0])}; };
        return split::make_pipe({&model, forward, {"x"}}, inputs, training, {});
      };
      engine::EngineOptions options;
      options.input_names = {"x"};
      options.input_chunks = {microbatch::ChunkSpec{}};
      options.loss = mean_square;
      engine::Engine engine(transport, schedule::parse_csv(rows, "by hand"), source, options);
      engine.train({x}, target);
      engine.train({x}, target);
      for (size_t i = 0; const at::Tensor& parameter : {model.scale, model.shift, model.lift}) {
        const at::Tensor step = (first[i] + second[i]) / 2;
        expect_same(parameter.grad(), step + step, "parameter " + std::to_string(i));
        ++i;
      }
    });
  }
}

using WeakStorage = c10::weak_intrusive_ptr<c10::StorageImpl>;

struct Count {
  int alive = 0, without_memory = 0, looked = 0;
};

/// Whenever `stage` begins `what` of a micro-batch from `first` on, counts those of its outputs for this and earlier
/// micro-batches that still have their memory.
Count count_alive(const schedule::Schedule& schedule, int stage, const std::string& what, int first,
                  const std::function<void(engine::EngineOptions&)>& change = {}, bool training = true) {
  Count count;
  std::vector<WeakStorage> made;
  Fleet fleet("mlp", schedule);
  fleet.options.decorate = listening([&](int of, Listener& listener) {
    if (of != stage) return;
    listener.made = [&](int, const Tensors& outputs) {
      for (const at::Tensor& output : outputs) made.push_back(output.storage().getWeakStorageImpl());
    };
    listener.heard = [&](const std::string& now, int microbatch, std::span<const at::Tensor> roots) {
      if (now != what || microbatch < first) return;
      ++count.looked;
      count.alive += static_cast<int>(std::count_if(made.begin(), made.end(), [](auto& s) { return !s.expired(); }));
      count.without_memory += static_cast<int>(std::count_if(roots.begin(), roots.end(), &backward::is_released));
    };
  });
  if (change) change(fleet.options);
  const at::Tensor x = batch_of("mlp", 8), target = target_of("mlp", 8);
  fleet.run([&](engine::Engine& engine, int) { training ? engine.train({x}, target) : engine.evaluate({x}, target); });
  return count;
}

const auto keep = [](engine::EngineOptions& options) { options.release_outputs = false; };

TEST(EngineRelease, OutputIsGoneOnceItWasSent) {
  // When the second backward begins, the first gradient has arrived, so the last stage has received all four values.
  for (const auto& [schedule, what] : {std::pair{schedule::make_schedule("gpipe", 3, 4), "B"},
                                       std::pair{halved(schedule::make_schedule("gpipe", 3, 4), {}), "I"}}) {
    SCOPED_TRACE(schedule.name);
    const Count released = count_alive(schedule, 1, what, 1), kept = count_alive(schedule, 1, what, 1, keep);
    EXPECT_EQ(released.looked, 3);
    EXPECT_EQ(released.alive, 0);
    EXPECT_EQ(released.without_memory, 3);
    EXPECT_EQ(kept.alive, 3 + 2 + 1);
    EXPECT_EQ(kept.without_memory, 0);
  }
}

TEST(EngineRelease, OutputOfTheFirstStageIsGoneBeforeItsW) {
  const Count released = count_alive(halved(schedule::make_schedule("gpipe", 3, 4), {}), 0, "B", 1);
  EXPECT_EQ(released.looked, 3);
  EXPECT_EQ(released.alive, 0);
  EXPECT_EQ(released.without_memory, 3);
}

TEST(EngineRelease, OutputForTheSameRankGoesWithItsConsumersBackward) {
  const schedule::Schedule schedule = placed({0, 0}, 1, 4, /*depth_first=*/true);
  const Count released = count_alive(schedule, 0, "B", 0), kept = count_alive(schedule, 0, "B", 0, keep);
  EXPECT_EQ(released.looked, 4);
  EXPECT_EQ(released.alive, 0);
  EXPECT_EQ(released.without_memory, 4);
  EXPECT_EQ(kept.alive, 4);
}

TEST(EngineRelease, OutputsOfTheLastStageStay) {
  const Count count = count_alive(schedule::make_schedule("gpipe", 2, 4), 1, "B", 0);
  EXPECT_EQ(count.looked, 4);
  EXPECT_EQ(count.alive, 16);
  EXPECT_EQ(count.without_memory, 0);
}

TEST(EngineRelease, ForwardsAloneKeepNothing) {
  const schedule::Schedule schedule = placed({0, 0}, 1, 4);
  const Count released = count_alive(schedule, 0, "F", 0, {}, /*training=*/false);
  EXPECT_EQ(released.looked, 4);
  EXPECT_EQ(released.alive, 0);
  EXPECT_EQ(count_alive(schedule, 0, "F", 0, keep, /*training=*/false).alive, 1 + 2 + 3);
}

TEST(EngineRelease, OutputsStayWhereModulesMakeTheirWeightGradients) {
  const auto own = [](engine::EngineOptions& options) {
    options.weight_work = [](int, int) { return engine::WeightWork(); };
  };
  EXPECT_EQ(count_alive(schedule::make_schedule("gpipe", 3, 4), 1, "B", 1, own).alive, 3 + 2 + 1);
}

TEST(EmulatedStage, SleepsInTheHalvesThatAreAskedFor) {
  // A lower bound on a rank's sleeping time; the first stage sleeps for both halves in its W.
  for (const auto& [times, least] : {std::pair{engine::EmulatedTimes{0, 4, 0}, 0.012},
                                     {engine::EmulatedTimes{0, 0, 4}, 0.012},
                                     {engine::EmulatedTimes{4, 0, 0}, 0.012}})
    for (const schedule::Schedule& schedule :
         {schedule::make_schedule("1f1b", 2, 3), halved(schedule::make_schedule("1f1b", 2, 3), {})})
      with_ranks(2, [&](transport::Transport& transport) {
        engine::Engine engine(transport, schedule, engine::emulated_pipe(2), engine::emulated_options(times));
        EXPECT_GE(engine.train({at::zeros({3, 4})}, {}).times.busy, least) << schedule.name;
      });
}

}  // namespace
}  // namespace plumbline::testing
