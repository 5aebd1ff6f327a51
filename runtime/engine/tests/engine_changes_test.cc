// Changes between steps, and requirements of a loss and an input: requires_grad, an evaluation without a target, means
// over counted elements, gradients of the inputs. Compared with plain autograd over the whole module.
#include <ATen/ops/embedding.h>
#include <ATen/ops/equal.h>
#include <c10/core/InferenceMode.h>

#include <mutex>

#include "runtime/engine/testing/engine_test_models.h"
#include "runtime/error.h"
#include "runtime/testing/refusal.h"

namespace plumbline::testing {
namespace {

void require_gradient(const at::Tensor& parameter, const std::string& name, const std::string& prefix, bool required) {
  if (name.starts_with(prefix)) parameter.set_requires_grad(required);
}

/// On every rank alike: in its module, which is captured again, and in the states of its stages.
void require_gradients(Fleet& fleet, engine::Engine& engine, int rank, const std::string& prefix, bool required) {
  for (const auto& item : fleet.nets[rank]->named_parameters())
    require_gradient(item.value(), item.key(), prefix, required);
  for (const auto& [stage, state] : engine.states())
    for (const auto& [name, parameter] : state.parameters) require_gradient(parameter, name, prefix, required);
  engine.forget_plans();
}

void require_gradients(Oracle& oracle, const std::string& prefix, bool required) {
  for (const auto& item : oracle.net->named_parameters()) require_gradient(item.value(), item.key(), prefix, required);
}

TEST(EngineChanges, FrozenBetweenStepsKeepsItsGradientAndUnfrozenLearnsAgain) {
  const at::Tensor x = batch_of("mlp", 6), target = target_of("mlp", 6);
  for (const char* name : {"1f1b", "zb-h1"}) {
    const schedule::Schedule schedule = schedule::make_schedule(name, 4, 3);
    Oracle oracle("mlp", 4, 3);
    Fleet fleet("mlp", schedule);
    Told ours[3], theirs[3];
    for (int step = 0; step < 3; ++step) {
      if (step == 1) require_gradients(oracle, "l0", false), require_gradients(oracle, "l2", false);
      if (step == 2) require_gradients(oracle, "l2", true);
      theirs[step] = oracle.train(x, target);
    }
    fleet.run([&](engine::Engine& engine, int rank) {
      for (int step = 0; step < 3; ++step) {
        if (step == 1) {
          require_gradients(fleet, engine, rank, "l0", false);
          require_gradients(fleet, engine, rank, "l2", false);
        }
        if (step == 2) require_gradients(fleet, engine, rank, "l2", true);
        fleet.tell(ours[step], engine, engine.train({x}, target));
      }
    });
    for (int step = 0; step < 3; ++step) {
      SCOPED_TRACE(std::string(name) + ", step " + std::to_string(step));
      expect_same(ours[step], theirs[step]);
    }
    EXPECT_FALSE(at::equal(theirs[1].gradients.at("l2.weight"), theirs[2].gradients.at("l2.weight")));
  }
}

TEST(EngineChanges, AFrozenSharedParameterIsNotSummedAgain) {
  const at::Tensor x = batch_of("tied", 6), target = target_of("tied", 6);
  Oracle oracle("tied", 2, 3);
  Fleet fleet("tied", schedule::make_schedule("1f1b", 2, 3));
  Told ours, theirs;
  oracle.train(x, target);
  require_gradients(oracle, "tied", false);
  theirs = oracle.train(x, target);
  fleet.run([&](engine::Engine& engine, int rank) {
    engine.train({x}, target);
    require_gradients(fleet, engine, rank, "tied", false);
    fleet.tell(ours, engine, engine.train({x}, target));
  });
  expect_same(ours, theirs);
}

TEST(EngineChanges, ZeroGradForgetsWhatAFrozenParameterHas) {
  const at::Tensor x = batch_of("mlp", 4), target = target_of("mlp", 4);
  Fleet fleet("mlp", schedule::make_schedule("gpipe", 2, 2));
  fleet.run([&](engine::Engine& engine, int rank) {
    engine.train({x}, target);
    require_gradients(fleet, engine, rank, "l", false);
    engine.zero_grad();
    for (const auto& [stage, state] : engine.states())
      for (const auto& [name, parameter] : state.parameters) EXPECT_FALSE(parameter.grad().defined()) << name;
  });
}

TEST(EngineChanges, AnEvaluationMayHaveNoLoss) {
  const at::Tensor x = batch_of("mlp", 4), target = target_of("mlp", 4);
  Fleet fleet("mlp", schedule::make_schedule("gpipe", 2, 2));
  fleet.options.loss = [](const Tensors& outputs, const at::Tensor& of) {
    return of.defined() ? mean_square(outputs, of) : at::Tensor();
  };
  fleet.run([&](engine::Engine& engine, int rank) {
    const engine::StepResult result = engine.evaluate({x}, {});
    EXPECT_EQ(result.outputs.size(), rank == 1 ? 2u : 0u);
    for (const at::Tensor& loss : result.losses) EXPECT_FALSE(loss.defined());
  });
  EXPECT_THROW(fleet.run([&](engine::Engine& engine, int) { engine.train({x}, {}); }), Error) << "a step needs a loss";
}

/// Rows whose target is 9 do not count; micro-batches of 2 rows have 2, 1 and 1 counted rows.
TEST(EngineChanges, AMeanIsOverWhatCounts) {
  const at::Tensor x = batch_of("mlp", 6);
  const at::Tensor target = target_of("mlp", 6).clone();
  for (const int row : {2, 5}) target[row].fill_(9);
  const auto counting = [](const Tensors& outputs, const at::Tensor& of) {
    const at::Tensor counts = of.select(1, 0).ne(9).to(at::kFloat).unsqueeze(1);
    return ((outputs[0] - of).pow(2) * counts).sum() / counts.sum();
  };
  Net whole("mlp", 2);
  counting(whole.forward({x}), target).backward();
  Fleet fleet("mlp", schedule::make_schedule("1f1b", 2, 3));
  fleet.options.loss = counting;
  fleet.options.mean_loss = true;
  fleet.options.mean_count = [](const at::Tensor& of) { return of.select(1, 0).ne(9).sum().item<int64_t>(); };
  Told ours;
  fleet.run([&](engine::Engine& engine, int) { fleet.tell(ours, engine, engine.train({x}, target)); });
  for (const auto& item : whole.named_parameters()) {
    const at::Tensor &a = ours.gradients.at(item.key()), &b = item.value().grad();
    // At most twelve roundings separate the two orders of sums; a wrong weight is off by a tenth and more.
    EXPECT_LT((a - b).norm().item<double>(), 12 * 0x1p-23 * b.norm().item<double>()) << item.key();
  }
}

TEST(EngineChanges, AMeanCountsRowsThatAreThere) {
  Fleet fleet("mlp", schedule::make_schedule("gpipe", 1, 2));
  fleet.options.mean_loss = true;
  const microbatch::Microbatches batch = {{{waves({2, kWidth}, 0.1)}, {at::ones({})}}, {}};
  const auto refused = [](int dimensions, int dim) {
    return "engine: input 'x' of micro-batch 1 has " + std::to_string(dimensions) +
           " dimensions, and mean_loss counts rows along dimension " + std::to_string(dim) +
           " (input_chunks); name the dimension of its rows, or mark it as replicated";
  };
  fleet.run([&](engine::Engine& engine, int) {
    EXPECT_EQ(refusal([&] { engine.train(batch); }), refused(0, 0));
    EXPECT_EQ(refusal([&] { engine.evaluate(batch); }), refused(0, 0));
  });
  fleet.options.input_chunks = {{.dim = 1}};
  fleet.run([&](engine::Engine& engine, int) {
    EXPECT_EQ(refusal([&] { engine.train({{batch.inputs[0], {waves({4}, 0.1)}}, {}}); }), refused(1, 1));
  });
}

/// Embeddings of a parameter of the first stage, of an input, and, in the second stage, of a parameter that is sent.
/// One of them is sparse.
struct Tables : torch::nn::Module {
  explicit Tables(int sparse)
      : sparse(sparse),
        own(register_parameter("own", waves({9, kWidth}, 4))),
        sent(register_parameter("sent", waves({9, kWidth}, 5))) {}
  at::Tensor rows(const at::Tensor& of, const at::Tensor& x, int number) const {
    return at::embedding(of, x, -1, false, number == sparse).tanh();
  }
  Tensors forward(const Tensors& in) const {
    const at::Tensor h = rows(own, in[0], 0) + rows(in[1], in[0], 1) + sent.sum();
    capture::pipe_split();
    return {h * rows(sent, in[0], 2)};
  }
  int sparse;
  at::Tensor own, sent;
};

TEST(EngineChanges, SparseGradientsAreRefused) {
  const at::Tensor x = batch_of("tied", 4), target = waves({4, 3, kWidth}, 2.5);
  const schedule::Schedule schedule = placed({0, 0}, 1, 2);
  for (int sparse : {0, 1, 2, 3}) {
    SCOPED_TRACE(sparse);
    Tables model(sparse);
    const engine::PipeSource source = [&](bool training, const Tensors& inputs) {
      const capture::ForwardFunction forward = [&model](const Tensors& in) { return model.forward(in); };
      return split::make_pipe({&model, forward, {"x", "other"}}, inputs, training,
                              {.multi_use = split::MultiUse::Transmit});
    };
    with_ranks(1, [&](transport::Transport& transport) {
      engine::EngineOptions options = Fleet("mlp", schedule).options;
      options.input_names = {"x", "other"};
      options.input_chunks = {{}, {.replicate = true}};
      engine::Engine engine(transport, schedule, source, options);
      const at::Tensor other = waves({9, kWidth}, 1).requires_grad_();
      const std::string text = refusal([&] { engine.train({x, other}, target); });
      if (sparse == 3) {
        EXPECT_EQ(text, "accepted") << "all are dense";
        return;
      }
      const char* const names[] = {"own", "other", "sent"};
      expect_part(text, std::string("engine: the gradient of '") + names[sparse] +
                            "' has the layout Sparse; a step adds up dense gradients (Strided) only: make embeddings "
                            "without sparse gradients");
      for (const at::Tensor& leaf : {model.own, model.sent, other}) EXPECT_FALSE(leaf.grad().defined());
    });
  }
}

/// The second of three micro-batches has no row that counts: its own mean is 0/0.
TEST(EngineChanges, AMicrobatchInWhichNothingCountsAddsNothing) {
  const at::Tensor x = batch_of("mlp", 6);
  const at::Tensor target = target_of("mlp", 6).clone();
  for (const int row : {2, 3, 5}) target[row].fill_(9);
  const auto counting = [](const Tensors& outputs, const at::Tensor& of) {
    const at::Tensor counts = of.select(1, 0).ne(9).to(at::kFloat).unsqueeze(1);
    return ((outputs[0] - of).pow(2) * counts).sum() / counts.sum();
  };
  Net whole("mlp", 2);
  counting(whole.forward({x}), target).backward();
  for (const char* name : {"1f1b", "zb-h1"}) {
    Fleet fleet("mlp", schedule::make_schedule(name, 2, 3));
    fleet.options.loss = counting;
    fleet.options.mean_loss = true;
    fleet.options.mean_count = [](const at::Tensor& of) { return of.select(1, 0).ne(9).sum().item<int64_t>(); };
    Told ours;
    fleet.run([&](engine::Engine& engine, int) { fleet.tell(ours, engine, engine.train({x}, target)); });
    EXPECT_TRUE(ours.losses.at(1).isnan().item<bool>()) << "as the user's function computes it";
    for (const auto& item : whole.named_parameters()) {
      const at::Tensor &a = ours.gradients.at(item.key()), &b = item.value().grad();
      EXPECT_LT((a - b).norm().item<double>(), 12 * 0x1p-23 * b.norm().item<double>()) << name << " " << item.key();
    }
  }
}

TEST(EngineChanges, GradientsOfGivenMicrobatchesAreTheirOwn) {
  const at::Tensor x = batch_of("skip", 6), target = target_of("skip", 6);
  for (const char* name : {"gpipe", "zb-h1"}) {
    Net whole("skip", 2);
    Fleet fleet("skip", schedule::make_schedule(name, 2, 3));
    fleet.run([&](engine::Engine& engine, int rank) {
      microbatch::Microbatches batch;
      for (const at::Tensor& piece : x.tensor_split(3)) batch.inputs.push_back({piece.detach().requires_grad_()});
      for (const at::Tensor& piece : target.tensor_split(3)) batch.targets.push_back(piece);
      engine.train(batch);
      for (int m = 0; m < 3 && rank == 0; ++m) {
        const at::Tensor leaf = x.tensor_split(3)[m].detach().requires_grad_();
        mean_square(whole.forward({leaf}), target.tensor_split(3)[m]).backward();
        EXPECT_TRUE(at::equal(batch.inputs[m][0].grad(), leaf.grad())) << name << ", micro-batch " << m;
      }
    });
  }
}

TEST(EngineChanges, GradientsAreAddedToTheGivenInputs) {
  const at::Tensor x = batch_of("skip", 7), target = target_of("skip", 7);
  for (const char* name : {"gpipe", "zb-h1"}) {
    Net whole("skip", 2);
    Tensors pieces;
    for (int m = 0; m < 3; ++m) {
      const at::Tensor leaf = x.tensor_split(3)[m].detach().requires_grad_();
      mean_square(whole.forward({leaf}), target.tensor_split(3)[m]).backward();
      pieces.push_back(leaf.grad());
    }
    const at::Tensor before = at::ones_like(x), wanted = at::add(before, at::cat(pieces));
    Fleet fleet("skip", schedule::make_schedule(name, 2, 3));
    fleet.run([&](engine::Engine& engine, int rank) {
      const at::Tensor given = x.clone().requires_grad_();
      given.mutable_grad() = before.clone();
      engine.train({given}, target);
      EXPECT_TRUE(at::equal(given.grad(), rank == 0 ? wanted : before)) << name << ", rank " << rank;
    });
  }
}

TEST(EngineChanges, ReplicatedInputsGetTheSumOverMicrobatches) {
  const at::Tensor x = batch_of("skip", 2), target = target_of("skip", 6);
  Net whole("skip", 2);
  const at::Tensor leaf = x.clone().requires_grad_();
  for (const at::Tensor& piece : target.tensor_split(3)) mean_square(whole.forward({leaf}), piece).backward();
  Fleet fleet("skip", schedule::make_schedule("1f1b", 2, 3));
  fleet.options.input_chunks = {microbatch::ChunkSpec{.replicate = true}};
  fleet.run([&](engine::Engine& engine, int rank) {
    const at::Tensor given = x.clone().requires_grad_();
    engine.train({given}, target);
    if (rank == 0) {
      EXPECT_TRUE(at::equal(given.grad(), leaf.grad()));
    }
  });
}

/// Threads may give one leaf: the rank of stage 0 alone changes its .grad.
TEST(EngineChanges, ARankWithoutTheFirstStageDoesNotTouchTheGradientsOfInputs) {
  const at::Tensor x = batch_of("skip", 2), target = target_of("skip", 6), before = at::ones_like(x);
  const at::Tensor given = x.clone().requires_grad_();  // on rank 1
  given.mutable_grad() = before;
  int losses = 0;
  Fleet fleet("skip", schedule::make_schedule("gpipe", 2, 3));
  fleet.options.input_chunks = {microbatch::ChunkSpec{.replicate = true}};
  fleet.options.loss = [&](const Tensors& outputs, const at::Tensor& of) {  // on rank 1, within its step
    EXPECT_TRUE(given.grad().is_same(before));
    ++losses;
    return mean_square(outputs, of);
  };
  fleet.run([&](engine::Engine& engine, int rank) {
    const at::Tensor mine = rank == 1 ? given : x.clone().requires_grad_();
    engine.train({mine}, target);
  });
  EXPECT_EQ(losses, 3);
  EXPECT_TRUE(given.grad().is_same(before));
}

TEST(EngineChanges, AComputedInputIsRefusedWhereEachMicrobatchWouldRunItsBackward) {
  const at::Tensor x = batch_of("mlp", 4), target = target_of("mlp", 4), leaf = x.clone().requires_grad_();
  const at::Tensor computed = leaf.sin();
  const std::string text =
      "engine: input 'x' is the result of operators that recorded their backward, which would run once for each "
      "micro-batch; give its detach(), which may require a gradient";
  for (bool replicate : {false, true}) {
    Fleet fleet("mlp", schedule::make_schedule("gpipe", 2, 2));
    fleet.options.input_chunks = {microbatch::ChunkSpec{.replicate = replicate}};
    fleet.run(
        [&](engine::Engine& engine, int) { EXPECT_EQ(refusal([&] { engine.train({computed}, target); }), text); });
  }
  EXPECT_FALSE(leaf.grad().defined());
  Fleet fleet("mlp", schedule::make_schedule("gpipe", 1, 2));
  fleet.run([&](engine::Engine& engine, int) {
    microbatch::Microbatches batch;  // of views, each with a backward of its own
    for (const at::Tensor& piece : leaf.tensor_split(2)) batch.inputs.push_back({piece});
    for (const at::Tensor& piece : target.tensor_split(2)) batch.targets.push_back(piece);
    engine.train(batch);
  });
  const at::Tensor plain = x.clone().requires_grad_();
  Net whole("mlp", 4);
  for (int m = 0; m < 2; ++m)
    mean_square(whole.forward({plain.tensor_split(2)[m]}), target.tensor_split(2)[m]).backward();
  EXPECT_TRUE(at::equal(leaf.grad(), plain.grad()));
}

TEST(EngineChanges, AFailedStepLeavesTheGradientsOfInputs) {
  const at::Tensor x = batch_of("skip", 6), target = target_of("skip", 6), before = at::ones_like(x);
  Fleet fleet("skip", schedule::make_schedule("gpipe", 1, 3));
  fleet.options.loss = [calls = 0](const Tensors& outputs, const at::Tensor& of) mutable {
    return ++calls == 3 ? at::Tensor() : mean_square(outputs, of);
  };
  fleet.run([&](engine::Engine& engine, int) {
    const at::Tensor given = x.clone().requires_grad_();
    given.mutable_grad() = before.clone();
    EXPECT_THROW(engine.train({given}, target), InputError);
    EXPECT_TRUE(at::equal(given.grad(), before));
  });
}

/// Autograd adds to the .grad of the input before it reaches the parameter, through which it passes first.
struct LateParameter : torch::nn::Module {
  LateParameter() : w(register_parameter("w", waves({kWidth}, 1))) {}
  Tensors forward(const Tensors& in) {
    const at::Tensor factor = at::exp(w);
    return {at::mul(in[0], factor)};
  }
  at::Tensor w;
};

TEST(EngineChanges, AFailedStepLeavesNoGradientInAnInput) {
  const schedule::Schedule schedule = placed({0}, 1, 2);
  with_ranks(1, [&](transport::Transport& transport) {
    LateParameter model;
    bool broken = true;
    model.w.register_hook([&broken](const at::Tensor& grad) {
      if (broken) throw std::runtime_error("once");
      return grad;
    });
    const engine::PipeSource source = [&](bool training, const Tensors& inputs) {
      const capture::ForwardFunction forward = [&](const Tensors& in) { return model.forward(in); };
      return split::make_pipe({&model, forward, {"x"}}, inputs, training, {});
    };
    engine::Engine engine(transport, schedule, source, Fleet("mlp", schedule).options);
    microbatch::Microbatches batch;
    for (int m = 0; m < 2; ++m) {
      batch.inputs.push_back({waves({2, kWidth}, m).requires_grad_()});
      batch.targets.emplace_back(waves({2, kWidth}, 2.5 + m));
    }
    EXPECT_THROW(engine.train(batch), Error);
    for (const Tensors& inputs : batch.inputs) EXPECT_FALSE(inputs[0].grad().defined());
    broken = false;
    engine.train(batch);
    for (int m = 0; m < 2; ++m) {
      const at::Tensor leaf = batch.inputs[m][0].detach().clone().requires_grad_();
      mean_square(model.forward({leaf}), batch.targets[m]).backward();
      expect_same(batch.inputs[m][0].grad(), leaf.grad(), "gradient of micro-batch " + std::to_string(m));
    }
  });
}

TEST(EngineChanges, EarlierGradientsMayBeSuchThatAreNotWrittenInPlace) {
  const at::Tensor x = batch_of("mlp", 6), target = target_of("mlp", 6);
  for (bool inference : {false, true}) {
    SCOPED_TRACE(inference ? "inference tensors" : "expanded");
    Fleet fleet("mlp", schedule::make_schedule("gpipe", 2, 3));
    Told ours;
    fleet.run([&](engine::Engine& engine, int) {
      engine.evaluate({x}, target);  // makes the states
      for (const auto& [stage, state] : engine.states())
        for (const auto& [name, parameter] : state.parameters) {
          const c10::InferenceMode mode(inference);
          parameter.mutable_grad() = inference ? at::ones(parameter.sizes()) : at::ones({}).expand(parameter.sizes());
        }
      fleet.tell(ours, engine, engine.train({x}, target));
    });
    const Told theirs = Oracle("mlp", 2, 3).train(x, target);
    for (const auto& [name, grad] : theirs.gradients)
      expect_same(ours.gradients.at(name), at::add(at::ones_like(grad), grad), name);
  }
}

TEST(EngineChanges, AnEarlierGradientOfOtherSizesOrLayoutIsRefusedAndNoneIsLost) {
  const at::Tensor x = batch_of("mlp", 4), target = target_of("mlp", 4);
  Fleet fleet("mlp", placed({0}, 1, 2));
  fleet.run([&](engine::Engine& engine, int) {
    engine.train({x}, target);
    const std::map<std::string, at::Tensor>& parameters = engine.states().at(0).parameters;
    const at::Tensor given = x.clone().requires_grad_();
    for (const std::string culprit : {"l2.bias", "x"}) {
      const at::Tensor& wrong = culprit == "x" ? given : parameters.at(culprit);
      const at::Tensor whole = at::ones_like(wrong.detach());
      given.mutable_grad() = at::ones_like(x);
      wrong.mutable_grad() = at::ones({1});
      NamedTensors before{{"x", given.grad().clone()}};
      for (const auto& [name, parameter] : parameters) before[name] = parameter.grad().clone();
      EXPECT_EQ(refusal([&] { engine.train({given}, target); }),
                "engine: the .grad of '" + culprit + "' is f32[1], its tensor is " +
                    (culprit == "x" ? "f32[4,6]" : "f32[6]") + "; give it the sizes of its tensor, or reset it");
      for (const auto& [name, parameter] : parameters) expect_same(parameter.grad(), before.at(name), name);
      expect_same(given.grad(), before.at("x"), "x");
      wrong.mutable_grad() = whole.to_sparse();
      expect_part(refusal([&] { engine.train({given}, target); }),
                  "engine: the gradient of '" + culprit + "' has the layout Sparse");
      wrong.mutable_grad() = whole;
    }
  });
}

}  // namespace
}  // namespace plumbline::testing
