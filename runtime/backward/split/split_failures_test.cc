// Exceptions in the halves leave the graph as a failed full backward does; users' nodes run once, or once per half.
#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/engine.h>

#include <atomic>
#include <set>
#include <stdexcept>

#include "runtime/backward/testing/backward_test_models.h"
#include "runtime/error.h"
#include "runtime/testing/leaf.h"

namespace plumbline::backward {
namespace {

using testing::leaf;

using namespace backward_test;
using torch::autograd::AutogradContext;
using torch::autograd::Edge;
using torch::autograd::Node;

// --- exceptions --------------------------------------------------------------------------------------------------

/// Every node of a graph, with its edges and its number of hooks of each kind. Keeps the nodes alive.
struct Snapshot {
  std::vector<Edge> nodes;
  std::vector<std::vector<Edge>> edges;
  std::vector<std::vector<size_t>> hooks;

  explicit Snapshot(const Tensors& roots) {
    std::set<Node*> seen;
    const auto visit = [&](const Edge& edge) {
      if (edge.is_valid() && seen.insert(edge.function.get()).second) nodes.push_back(edge);
    };
    for (const at::Tensor& root : roots) visit(torch::autograd::impl::gradient_edge(root));
    for (size_t i = 0; i < nodes.size(); ++i)
      for (const Edge& edge : std::vector<Edge>(std::as_const(*nodes[i].function).next_edges())) visit(edge);
    refresh();
  }
  /// The current state of the same nodes.
  void refresh() {
    edges.clear(), hooks.clear();
    for (const Edge& edge : nodes) {
      Node& node = *edge.function;
      edges.push_back(std::as_const(node).next_edges());
      hooks.push_back({node.pre_hooks().size(), node.post_hooks().size(), node.tensor_pre_hooks().size(),
                       node.retains_grad_hooks().size()});
    }
  }
};

class SplitFailures : public ::testing::Test {
 protected:
  SplitFailures() { at::manual_seed(3); }
  static void throwing(const at::Tensor& tensor) {
    tensor.register_hook([](const at::Tensor& grad) -> at::Tensor {
      if (grad.defined()) throw std::runtime_error("the hook's own words");
      return grad;
    });
  }
  at::Tensor x = leaf({3, 8}), w = leaf({8, 8}), b = leaf({8}), g = leaf({8}), grad = at::randn({3, 8});
  WeightBackward weights;
  Tensors input_grads;
};

/// Linear, norm, linear; `h` is the output of the norm. Also weights that pass through a node before their use.
struct Chain {
  at::Tensor first, h, weight, out;
  Chain(const at::Tensor& x, const at::Tensor& w, const at::Tensor& b, const at::Tensor& g)
      : first(at::addmm(b, x, w)),
        h(at::layer_norm(first, {8}, g, b)),
        weight(w.tanh()),
        out(h.matmul(weight).tanh() + b) {}
};

TEST_F(SplitFailures, AHookThatThrowsInTheFirstHalf) {
  for (int place = 0; place < 3; ++place) {
    for (const bool retain : {false, true}) {
      const Chain chain(x, w, b, g);
      at::Tensor input = x;
      if (place == 2) throwing(chain.out);
      if (place == 1) throwing(chain.h);
      if (place == 0) throwing(chain.first);
      Snapshot before({chain.out}), after = before;
      std::string text = "accepted";
      try {
        stage_backward_input(Tensors{chain.out}, Tensors{grad}, Tensors{x}, input_grads, weights,
                             {.retain_graph = retain});
      } catch (const Error& error) {
        text = error.what();
      }
      EXPECT_NE(text.find("the hook's own words"), std::string::npos) << text;
      EXPECT_NE(text.find("f32[3,8]"), std::string::npos) << text << " (no shapes)";
      after.refresh();
      EXPECT_EQ(before.hooks, after.hooks) << "place " << place << ", retain " << retain;
      EXPECT_TRUE(before.edges == after.edges) << "a cut edge, place " << place << ", retain " << retain;
      EXPECT_FALSE(weights.pending());
      for (const at::Tensor& tensor : {x, w, b, g}) EXPECT_FALSE(tensor.grad().defined());
    }
  }
}

/// After a failure on a retained graph, a full backward without the throwing hook is correct.
TEST_F(SplitFailures, ARetainedGraphSurvivesAFailure) {
  const Chain chain(x, w, b, g);
  const Tensors one = torch::autograd::grad({chain.out}, {x, w, b, g}, {grad}, true);
  bool armed = true;
  chain.first.register_hook([&armed](const at::Tensor& grad) {
    if (armed) throw std::runtime_error("once");
    return grad;
  });
  const SplitBackwardOptions keep{.retain_graph = true};
  EXPECT_THROW(stage_backward_input(Tensors{chain.out}, Tensors{grad}, Tensors{x}, input_grads, weights, keep), Error);
  armed = false;
  torch::autograd::backward({chain.out}, {grad});
  expect_same(one, {x.grad(), w.grad(), b.grad(), g.grad()}, "leaf");
}

TEST_F(SplitFailures, AHookThatThrowsInTheSecondHalf) {
  for (const bool retain : {false, true}) {
    const Chain chain(x, w, b, g);
    throwing(chain.weight);
    Snapshot before({chain.out}), after = before;
    stage_backward_input(Tensors{chain.out}, Tensors{grad}, Tensors{x}, input_grads, weights, {.retain_graph = retain});
    std::string text = "accepted";
    try {
      stage_backward_weight(weights);
    } catch (const Error& error) {
      text = error.what();
    }
    EXPECT_NE(text.find("the hook's own words"), std::string::npos) << text;
    EXPECT_FALSE(weights.pending());
    after.refresh();
    EXPECT_EQ(before.hooks, after.hooks) << "retain " << retain;
    if (retain) {
      EXPECT_TRUE(before.edges == after.edges);
    }
  }
}

/// A callback that a hook queues for the end of the backward is called.
TEST_F(SplitFailures, AHookMayQueueACallback) {
  for (const bool shared : {false, true}) {
    int hooks = 0, callbacks = 0;
    const auto queue = [&](const at::Tensor& grad) {
      ++hooks;
      torch::autograd::Engine::get_default_engine().queue_callback([&] { ++callbacks; });
      return grad;
    };
    const at::Tensor weight = leaf({8, 8}), h = x.matmul(weight).tanh();
    h.register_hook(queue), weight.register_hook(queue);
    const at::Tensor out = shared ? h.matmul(weight) : h.matmul(w);
    stage_backward_input(Tensors{out}, Tensors{grad}, Tensors{x}, input_grads, weights);
    EXPECT_EQ(callbacks, 1) << "of the first half";
    stage_backward_weight(weights);
    EXPECT_EQ(hooks, 2);
    EXPECT_EQ(callbacks, 2);
  }
}

/// A complete split leaves no hook of ours, and a retained graph whole.
TEST_F(SplitFailures, NothingOfOursStaysInAGraph) {
  for (const bool retain : {false, true}) {
    const Chain chain(x, w, b, g);
    chain.first.register_hook([](const at::Tensor& grad) { return grad * 2; });
    chain.h.retain_grad();
    Snapshot before({chain.out}), after = before;
    stage_backward_input(Tensors{chain.out}, Tensors{grad}, Tensors{x}, input_grads, weights, {.retain_graph = retain});
    stage_backward_weight(weights);
    after.refresh();
    if (retain) {
      EXPECT_EQ(before.hooks, after.hooks);
      EXPECT_TRUE(before.edges == after.edges);
    }
    for (size_t i = 0; i < after.hooks.size(); ++i)
      for (size_t k = 0; k < 4; ++k) EXPECT_LE(after.hooks[i][k], before.hooks[i][k]);
  }
}

// --- users' nodes ------------------------------------------------------------------------------------------------

struct FunctionCalls {
  std::atomic<int> runs = 0, of_input = 0, of_weight = 0;
};
template <class Self>
FunctionCalls& calls() {
  static FunctionCalls counted;
  return counted;
}

/// x w. Computes only the requested gradients.
template <class Self>
struct Product : torch::autograd::Function<Self> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& w) {
    context->save_for_backward({x, w});
    return x.matmul(w);
  }
  static Tensors backward(AutogradContext* context, Tensors grads) {
    const Tensors saved = context->get_saved_variables();
    FunctionCalls& counted = calls<Self>();
    ++counted.runs;
    Tensors made(2);
    if (context->needs_input_grad(0)) ++counted.of_input, made[0] = grads[0].matmul(saved[1].t());
    if (context->needs_input_grad(1)) ++counted.of_weight, made[1] = saved[0].t().matmul(grads[0]);
    return made;
  }
};
struct DivisibleProduct : Product<DivisibleProduct> {};
struct WholeProduct : Product<WholeProduct> {};

/// x w times a square, all gradients at once, whether requested or not.
struct AllAtOnce : torch::autograd::Function<AllAtOnce> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& w) {
    context->save_for_backward({x, w});
    return x.matmul(w);
  }
  static Tensors backward(AutogradContext* context, Tensors grads) {
    ++calls<AllAtOnce>().runs;
    const Tensors saved = context->get_saved_variables();
    return {grads[0].matmul(saved[1].t()), saved[0].t().matmul(grads[0])};
  }
};

template <class Function>
Stage stage_of(at::ScalarType dtype) {
  Leaves leaves{dtype};
  const at::Tensor w = leaves.param({8, 8}), v = leaves.param({8, 8});
  return leaves.stage(leaves.one({6, 8}), [=](const Tensors& in) {
    return Tensors{Function::apply(Function::apply(in[0], w).tanh(), v).tanh().matmul(w)};
  });
}

/// test_stage_backward_weight_custom_autograd_function
TEST_F(SplitFailures, ADivisibleNodeRunsOnceAHalf) {
  add_divisible_node("DivisibleProduct");
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
    expect_same(run_full(stage_of<DivisibleProduct>, dtype, 3), run_halves(stage_of<DivisibleProduct>, dtype, 3, 1));
    const Stage stage = build(stage_of<DivisibleProduct>, dtype);
    const MicroBatch batch = forward(stage, 0);
    FunctionCalls& counted = calls<DivisibleProduct>();
    counted.runs = counted.of_input = counted.of_weight = 0;
    first_half(stage, batch, weights);
    EXPECT_EQ(counted.runs, 2);
    EXPECT_EQ(counted.of_input, 2);
    EXPECT_EQ(counted.of_weight, 0) << "left to the second half";
    stage_backward_weight(weights);
    EXPECT_EQ(counted.runs, 4);
    EXPECT_EQ(counted.of_input, 2);
    EXPECT_EQ(counted.of_weight, 2);
  }
}

template <class Function>
void expect_one_run() {
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
    expect_same(run_full(stage_of<Function>, dtype, 3), run_halves(stage_of<Function>, dtype, 3, 1));
    const Stage stage = build(stage_of<Function>, dtype);
    const MicroBatch batch = forward(stage, 0);
    FunctionCalls& counted = calls<Function>();
    counted.runs = 0;
    WeightBackward weights;
    first_half(stage, batch, weights);
    EXPECT_EQ(counted.runs, 2) << "whole, in the first half";
    stage_backward_weight(weights);
    EXPECT_EQ(counted.runs, 2);
  }
}
TEST_F(SplitFailures, AnyOtherNodeOfAUserRunsOnce) {
  expect_one_run<WholeProduct>();
  expect_one_run<AllAtOnce>();
}

/// A hook after a divisible node has to see all of its gradients at once.
TEST_F(SplitFailures, ADivisibleNodeWithAHookAfterItRunsOnce) {
  add_divisible_node("DivisibleProduct");
  const BuildStage make = [](at::ScalarType dtype) {
    Stage stage = stage_of<DivisibleProduct>(dtype);
    stage.forward = [p = stage.params, counts = stage.hooks](const Tensors& in) {
      const at::Tensor out = DivisibleProduct::apply(in[0], p[0]);
      out.grad_fn()->add_post_hook(std::make_unique<UserPostHook>(counts, "after"));
      return Tensors{out.tanh().matmul(p[1])};
    };
    return stage;
  };
  const Gradients full = run_full(make, at::kFloat);
  EXPECT_EQ(full.hooks.at("after"), 1);
  expect_same(full, run_halves(make, at::kFloat));
}

}  // namespace
}  // namespace plumbline::backward
