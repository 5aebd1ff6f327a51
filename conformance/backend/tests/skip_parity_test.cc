// torchgpipe's tests of skips in a pipeline (tests/skip/test_gpipe.py, test_leak.py, test_portal.py, test_tracker.py),
// each under its name, in terms of stages, boundaries and the lives of tensors: against plain autograd over the whole
// model.
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Parallel.h>
#include <ATen/ops/add.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/sum.h>
#include <gtest/gtest.h>

#include <mutex>

#include "runtime/capture/pipe_modules.h"
#include "runtime/engine/engine.h"
#include "runtime/engine/stage/forwarding_runner.h"
#include "runtime/schedule/orders/schedule_kinds.h"
#include "runtime/skip/skippable.h"
#include "runtime/split/module_pipe.h"
#include "runtime/testing/spawn.h"

namespace plumbline::conformance {
namespace {

using Tensors = std::vector<at::Tensor>;
using NamedTensors = std::map<std::string, at::Tensor>;
using testing::with_ranks;

const engine::Recompute kPolicies[] = {engine::Recompute::Never, engine::Recompute::ExceptLast,
                                       engine::Recompute::Always};

engine::EngineOptions options_for(engine::Recompute recompute) {
  engine::EngineOptions options;
  options.input_names = {"x"};
  options.input_chunks = {microbatch::ChunkSpec{}};
  options.loss = [](const Tensors& outputs, const at::Tensor&) { return at::sum(outputs[0]); };
  options.timeout = std::chrono::seconds(60);
  options.recompute.policy = recompute;
  return options;
}

/// The first balance[0] children are stage 0, and so on. `model` must outlive it.
engine::PipeSource source_of(Sequence& model, const std::vector<int>& balance,
                             std::vector<split::Boundary>* boundaries = nullptr) {
  std::vector<split::SplitPoint> points;
  int child = 0;
  for (size_t stage = 0; stage + 1 < balance.size(); ++stage) {
    child += balance[stage];
    points.push_back({std::to_string(child)});
  }
  return [&model, points, boundaries](bool training, const Tensors& inputs) {
    split::Pipe pipe =
        split::make_pipe({model.get(), [&](const Tensors& in) { return Tensors{model->forward(in[0])}; }, {"x"}},
                         inputs, training, {.points = points});
    if (boundaries) *boundaries = pipe.boundaries;
    return pipe;
  };
}

struct Answer {
  at::Tensor output;
  NamedTensors gradients;
  std::vector<split::Boundary> boundaries;
};

/// One step of 1F1B, with a rank for each stage.
Answer in_stages(const std::function<Sequence()>& make, const at::Tensor& x, const std::vector<int>& balance,
                 int microbatches, engine::Recompute recompute) {
  Answer answer;
  std::mutex mutex;
  const auto stages = static_cast<int>(balance.size());
  with_ranks(stages, [&](transport::Transport& transport) {
    at::set_num_threads(1);
    Sequence model = make();
    std::vector<split::Boundary> boundaries;
    engine::Engine engine(transport, schedule::make_schedule("1f1b", stages, microbatches),
                          source_of(model, balance, &boundaries), options_for(recompute));
    const engine::StepResult step = engine.train({x}, {});
    EXPECT_TRUE(skip::current_skip_tracker().kept().empty());
    const std::lock_guard<std::mutex> lock(mutex);
    if (transport.rank() == stages - 1) answer.output = engine.merged_outputs(step)[0];
    for (const auto& [stage, state] : engine.states())
      for (const auto& [name, tensor] : state.parameters)
        answer.gradients[name] = tensor.grad().defined() ? tensor.grad().clone() : at::Tensor();
    if (transport.rank() == 0) answer.boundaries = boundaries;
  });
  return answer;
}

Answer whole(const std::function<Sequence()>& make, const at::Tensor& x, int microbatches) {
  at::set_num_threads(1);
  Sequence model = make();
  Tensors outputs;
  for (const at::Tensor& part : x.tensor_split(microbatches)) {
    outputs.push_back(model->forward(part));
    at::sum(outputs.back()).backward();
  }
  Answer answer;
  answer.output = at::cat(outputs).detach();
  for (const auto& item : model->named_parameters())
    answer.gradients[item.key()] =
        item.value().grad().defined() ? item.value().grad() / microbatches : item.value().grad();
  return answer;
}

void expect_same(const Answer& ours, const Answer& theirs) {
  EXPECT_TRUE(at::equal(ours.output, theirs.output)) << "output";
  ASSERT_EQ(ours.gradients.size(), theirs.gradients.size());
  for (const auto& [name, grad] : theirs.gradients) {
    ASSERT_EQ(ours.gradients.at(name).defined(), grad.defined()) << name;
    if (grad.defined()) {
      EXPECT_TRUE(at::equal(ours.gradients.at(name), grad)) << "gradient of " << name;
    }
  }
}

// --- test_gpipe.py ---

class Convolution : public torch::nn::Module {
 public:
  /// Ranks are threads here that construct their models at one time: each draws from a generator of its own.
  explicit Convolution(uint64_t seed)
      : weight_(register_parameter("weight", at::randn({3, 3, 1, 1}, at::detail::createCPUGenerator(seed)))) {}
  at::Tensor forward(const at::Tensor& x) { return at::conv2d(x, weight_); }

 private:
  at::Tensor weight_;
};
class StashesItsInput : public Convolution {
 public:
  inline static const skip::SkipNames skips{.stash = {"1to3"}};
  using Convolution::Convolution;
  skip::SkipForward<> forward(at::Tensor x) {
    co_yield stash("1to3", x);
    co_return Convolution::forward(x);
  }
};
class AddsTheSkip : public Convolution {
 public:
  inline static const skip::SkipNames skips{.pop = {"1to3"}};
  using Convolution::Convolution;
  skip::SkipForward<> forward(at::Tensor x) {
    const at::Tensor skip = co_yield pop("1to3");
    co_return at::add(Convolution::forward(x), skip);
  }
};

TEST(TorchgpipeSkips, test_1to3) {
  const auto model = [] {
    return Sequence(skip::skippable<StashesItsInput>(1), std::make_shared<Convolution>(2),
                    skip::skippable<AddsTheSkip>(3));
  };
  at::manual_seed(7);
  const at::Tensor x = at::randn({6, 3, 5, 5});
  const Answer expected = whole(model, x, 3);
  for (const engine::Recompute recompute : kPolicies)
    for (const std::vector<int>& balance : std::vector<std::vector<int>>{{3}, {1, 2}, {2, 1}, {1, 1, 1}}) {
      SCOPED_TRACE(to_string(recompute) + ", " + std::to_string(balance.size()) + " stages, " +
                   std::to_string(balance[0]) + " in the first");
      expect_same(in_stages(model, x, balance, 3, recompute), expected);
      if (HasFailure()) return;
    }
}

class Scales : public torch::nn::Module {
 public:
  at::Tensor weight = register_parameter("weight", at::full({4}, 3.0));
  at::Tensor forward(const at::Tensor& x) { return at::mul(x, weight); }
};
class StashesNone : public torch::nn::Module {
 public:
  inline static const skip::SkipNames skips{.stash = {"skip"}};
  skip::SkipForward<> forward(at::Tensor x) {
    co_yield stash("skip", {});
    co_return at::mul(x, 2.0);
  }
};
class AddsUnlessNone : public Scales {
 public:
  inline static const skip::SkipNames skips{.pop = {"skip"}};
  skip::SkipForward<> forward(at::Tensor x) {
    const at::Tensor skip = co_yield pop("skip");
    co_return skip.defined() ? at::add(x, skip) : Scales::forward(x);
  }
};

TEST(TorchgpipeSkips, none_skip) {
  const auto model = [] {
    return Sequence(skip::skippable<StashesNone>(), std::make_shared<Scales>(), skip::skippable<AddsUnlessNone>());
  };
  const at::Tensor x = at::full({10, 4}, 1.0);
  for (const engine::Recompute recompute : kPolicies) {
    SCOPED_TRACE(to_string(recompute));
    const Answer ours = in_stages(model, x, {1, 1, 1}, 5, recompute);
    expect_same(ours, whole(model, x, 5));
    EXPECT_EQ(ours.boundaries.size(), 2u) << "nothing crosses but what the layers hand on";
  }
}

// --- test_tracker.py, test_portal.py: which skips cross, and which gradients come back ---

/// The stashed value has no other user: it is made for the stash, and autograd does not keep it for this layer's own
/// backward.
class StashesASum : public torch::nn::Module {
 public:
  inline static const skip::SkipNames skips{.stash = {"skip"}};
  at::Tensor weight = register_parameter("weight", at::full({4}, 2.0));
  skip::SkipForward<> forward(at::Tensor x) {
    co_yield stash("skip", at::add(x, weight));
    co_return at::mul(x, weight);
  }
};
class StashesAConstant : public Scales {
 public:
  inline static const skip::SkipNames skips{.stash = {"skip"}};
  skip::SkipForward<> forward(at::Tensor x) {
    co_yield stash("skip", at::add(x, 1.0));  // of the input, which requires no gradient
    co_return Scales::forward(x);
  }
};
class MultipliesByTheSkip : public torch::nn::Module {
 public:
  inline static const skip::SkipNames skips{.pop = {"skip"}};
  skip::SkipForward<> forward(at::Tensor x) { co_return at::mul(x, co_yield pop("skip")); }
};
class IgnoresTheSkip : public torch::nn::Module {
 public:
  inline static const skip::SkipNames skips{.pop = {"skip"}};
  skip::SkipForward<> forward(at::Tensor x) {
    (void)(co_yield pop("skip"));
    co_return at::mul(x, 2.0);
  }
};

template <class Stashing, class Popping>
Sequence with_a_skip() {
  return Sequence(skip::skippable<Stashing>(), std::make_shared<Scales>(), skip::skippable<Popping>(),
                  std::make_shared<Scales>());
}

/// The boundary that passes over a stage.
std::vector<split::Boundary> far(const std::vector<split::Boundary>& boundaries) {
  std::vector<split::Boundary> found;
  for (const split::Boundary& boundary : boundaries)
    if (boundary.consumers.back().stage > boundary.producer + 1) found.push_back(boundary);
  return found;
}

TEST(TorchgpipeSkips, no_copy_no_portal) {
  const auto model = with_a_skip<StashesASum, MultipliesByTheSkip>;
  const at::Tensor x = at::full({6, 4}, 5.0);
  const Answer inside = in_stages(model, x, {3, 1}, 2, engine::Recompute::Never);
  expect_same(inside, whole(model, x, 2));
  EXPECT_EQ(inside.boundaries.size(), 1u) << "stashed and popped in one stage";
  EXPECT_EQ(in_stages(model, x, {1, 3}, 2, engine::Recompute::Never).boundaries.size(), 2u) << "to the next stage";
}

/// What passes over a stage when each layer is one, after its answer was found to be that of the whole model.
std::vector<split::Boundary> far_in_four_stages(const std::function<Sequence()>& model) {
  const at::Tensor x = at::full({6, 4}, 5.0);
  const Answer ours = in_stages(model, x, {1, 1, 1, 1}, 2, engine::Recompute::Never);
  expect_same(ours, whole(model, x, 2));
  return far(ours.boundaries);
}

TEST(TorchgpipeSkips, blue_orange) {
  const std::vector<split::Boundary> skips = far_in_four_stages(with_a_skip<StashesASum, MultipliesByTheSkip>);
  ASSERT_EQ(skips.size(), 1u);
  EXPECT_TRUE(skips[0].has_gradient);
}

TEST(TorchgpipeSkips, blue_orange_not_requires_grad) {
  const std::vector<split::Boundary> skips = far_in_four_stages(with_a_skip<StashesAConstant, MultipliesByTheSkip>);
  ASSERT_EQ(skips.size(), 1u);
  EXPECT_FALSE(skips[0].has_gradient);
}

// torchgpipe waits for a gradient that is never computed (PyTorch's issue 110775).
TEST(TorchgpipeSkips, AnUnusedPoppedSkipDoesNotTravel) {
  EXPECT_TRUE(far_in_four_stages(with_a_skip<StashesASum, IgnoresTheSkip>).empty());
}

// --- test_leak.py, and tensor_life of test_tracker.py and test_portal.py ---

/// Tells a visitor of the forwards and backwards that begin, with what the forwards got.
class Watched : public engine::ForwardingRunner {
 public:
  using Visit = std::function<void(const std::string& what, std::span<const at::Tensor> inputs)>;
  Watched(int stage, Visit visit, std::unique_ptr<engine::StageRunner> inner)
      : ForwardingRunner(std::move(inner)), stage_(std::to_string(stage)), visit_(std::move(visit)) {}
  void forward(int microbatch, std::span<const at::Tensor> inputs, Tensors& outputs) override {
    visit_(stage_ + "F", inputs);
    ForwardingRunner::forward(microbatch, inputs, outputs);
  }
  void backward(int microbatch, std::span<const at::Tensor> roots, std::span<const at::Tensor> root_grads,
                std::span<const at::Tensor> inputs, Tensors& input_grads) override {
    visit_(stage_ + "B", {});
    ForwardingRunner::backward(microbatch, roots, root_grads, inputs, input_grads);
  }

 private:
  std::string stage_;
  Visit visit_;
};

/// By action: whether the skip's memory is still there when it begins, in a step of four stages on one rank, of one
/// micro-batch. The skip goes from stage 0 to stage 2.
std::map<std::string, bool> life_of_a_skip(bool training, engine::Recompute recompute) {
  std::map<std::string, bool> there;
  with_ranks(1, [&](transport::Transport& transport) {
    Sequence model = with_a_skip<StashesASum, MultipliesByTheSkip>();
    std::optional<c10::weak_intrusive_ptr<c10::StorageImpl>> skip;
    const auto visit = [&](const std::string& what, std::span<const at::Tensor> inputs) {
      if (what == "2F")
        for (const at::Tensor& input : inputs)
          if (at::equal(input, at::full({3, 4}, 7.0)))  // 5 + 2, where what came from stage 1 is 5 x 2 x 3
            skip.emplace(input.storage().getWeakStorageImpl());
      if (skip) there[what] = !skip->expired();
    };
    engine::EngineOptions options = options_for(recompute);
    options.decorate = [&](int stage, const split::StageState&, std::unique_ptr<engine::StageRunner> inner) {
      return std::make_unique<Watched>(stage, visit, std::move(inner));
    };
    schedule::Schedule schedule{"one rank", 4, 1, {0, 0, 0, 0}, {{}}};
    for (int stage = 0; stage < 4; ++stage) schedule.ranks[0].push_back({stage, schedule::ActionType::F, 0});
    for (int stage = 3; stage >= 0; --stage) schedule.ranks[0].push_back({stage, schedule::ActionType::B, 0});
    engine::Engine engine(transport, schedule, source_of(model, {1, 1, 1, 1}), options);
    const at::Tensor x = at::full({3, 4}, 5.0);
    if (training)
      engine.train({x}, {});
    else
      engine.evaluate({x}, {});
  });
  return there;
}

TEST(TorchgpipeSkips, delete_portal_tensor_eval) {
  for (const engine::Recompute recompute : kPolicies)
    EXPECT_EQ(life_of_a_skip(false, recompute), (std::map<std::string, bool>{{"2F", true}, {"3F", false}}))
        << to_string(recompute) << ": gone with the pop";
}

TEST(TorchgpipeSkips, delete_portal_tensor_train) {
  for (const engine::Recompute recompute : kPolicies)
    EXPECT_EQ(life_of_a_skip(true, recompute),
              (std::map<std::string, bool>{
                  {"2F", true}, {"3F", true}, {"3B", true}, {"2B", true}, {"1B", false}, {"0B", false}}))
        << to_string(recompute) << ": gone with the backward of the pop";
}

}  // namespace
}  // namespace plumbline::conformance
