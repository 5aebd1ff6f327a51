// The contract of the two halves, call by call: results, changes and their time, refusals, freed memory. Counterparts
// of PyTorch's test_backward.py name its tests. For every kind of graph see split_models_test.cc.
#include "runtime/backward/split/split_backward.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <atomic>
#include <set>

#include "runtime/backward/stage_backward.h"
#include "runtime/backward/testing/backward_test_models.h"
#include "runtime/testing/leaf.h"
#include "runtime/testing/refusal.h"

namespace plumbline::backward {
namespace {

using testing::leaf;

using namespace backward_test;
using c10::IValue;
using torch::autograd::Node;

IValue tuple_of(std::vector<IValue> values) { return c10::ivalue::Tuple::create(std::move(values)); }

/// x and y, then a = tanh(x w), b = a y + y.
class SplitBackward : public ::testing::Test {
 protected:
  SplitBackward() { at::manual_seed(5); }
  Tensors expected(const Tensors& roots, const Tensors& grads, const Tensors& of) {
    return torch::autograd::grad(roots, of, grads, /*retain_graph=*/true, /*create_graph=*/false,
                                 /*allow_unused=*/true);
  }
  Tensors half(const Tensors& roots, const Tensors& grads, const Tensors& inputs,
               const SplitBackwardOptions& options = {}) {
    Tensors input_grads;
    stage_backward_input(roots, grads, inputs, input_grads, weights, options);
    return input_grads;
  }
  at::Tensor x = leaf({3, 4}), y = leaf({3, 2}), w = leaf({4, 2});
  at::Tensor a = x.matmul(w).tanh(), b = a * y + y;
  at::Tensor ga = at::randn({3, 2}), gb = at::randn({3, 2});
  WeightBackward weights;
};

// --- results and gradients ---------------------------------------------------------------------------------------

/// test_stage_backward_input, test_stage_backward_weight
TEST_F(SplitBackward, InputsFirstParametersLater) {
  const at::Tensor loss = at::mse_loss(b, at::randn({3, 2}), at::Reduction::Sum);
  const Tensors one = expected({loss}, {}, {x, y, w});
  EXPECT_FALSE(weights.pending());
  const Tensors back = half({loss}, {at::Tensor()}, {x, y});
  EXPECT_TRUE(weights.pending());
  expect_same({one[0], one[1]}, back, "input");
  expect_same({one[0], one[1]}, {x.grad(), y.grad()}, ".grad of input");
  EXPECT_FALSE(back[0].requires_grad());
  EXPECT_FALSE(w.grad().defined());
  const Tensors of = stage_backward_weight(weights, Tensors{w, x});
  EXPECT_FALSE(weights.pending());
  ASSERT_EQ(of.size(), 2u);
  EXPECT_TRUE(of[0].is_same(w.grad()));
  expect_same({one[2], one[0]}, of, "after W");
}

TEST_F(SplitBackward, InputsGradIsAddedToOrLeftAlone) {
  const Tensors one = expected({b}, {gb}, {x, y});
  const at::Tensor before = at::randn({3, 4});
  x.mutable_grad() = before.clone();
  expect_same(one, half({b}, {gb}, {x, y}, {.retain_graph = true, .accumulate_into_inputs = false}), "input");
  EXPECT_TRUE(same(before, x.grad()));
  EXPECT_FALSE(y.grad().defined());
  stage_backward_weight(weights);
  EXPECT_TRUE(same(before, x.grad())) << "W has nothing to do with inputs";
  EXPECT_FALSE(y.grad().defined());
  expect_same(one, half({b}, {gb}, {x, y}), "what is returned is this call's gradient alone");
  expect_same({before + one[0], one[1]}, {x.grad(), y.grad()}, ".grad");
  stage_backward_weight(weights);
  expect_same({before + one[0], one[1]}, {x.grad(), y.grad()}, ".grad after W");
}

/// Root gradients belong to the caller and are never added to, even if one goes directly to a leaf.
TEST_F(SplitBackward, RootGradientsAreNotChanged) {
  const at::Tensor kept = ga.clone(), ones = at::ones({4, 2}), bias = leaf({3, 2});
  for (int time = 0; time < 2; ++time) {
    const Tensors back = half({y, w, y + bias}, {ga, ones, gb}, {y});
    EXPECT_TRUE(same(kept + gb, back[0]));
    stage_backward_weight(weights);
  }
  EXPECT_TRUE(at::equal(ga, kept) && at::equal(ones, at::ones({4, 2})));
  EXPECT_TRUE(same(at::full({4, 2}, 2.0), w.grad()));
  EXPECT_TRUE(same(gb + gb, bias.grad()));
}

/// test_stage_backward_input_ignores_non_tensor_inputs, and undefined inputs, unused ones, those that come twice.
TEST_F(SplitBackward, OneSlotAnInput) {
  const at::Tensor unused = leaf({2}), index = at::ones({2}, at::kLong), constant = at::ones({2});
  const Tensors one = expected({b}, {gb}, {x, y});
  const Tensors back = half({b}, {gb}, {unused, x, index, at::Tensor(), y, x, constant});
  expect_same({{}, one[0], {}, {}, one[1], {}, {}}, back, "slot");
  expect_same({{}, one[0], one[1]}, {unused.grad(), x.grad(), y.grad()}, ".grad");
}

/// test_stage_backward_input_with_view_output
TEST_F(SplitBackward, AnIdentityViewIsAnOutput) {
  const at::Tensor seen = a.view_as(a);
  const Tensors one = expected({seen}, {ga}, {x, w});
  EXPECT_TRUE(same(one[0], half({seen}, {ga}, {x})[0]));
  stage_backward_weight(weights);
  EXPECT_TRUE(same(one[1], w.grad()));
}

/// The graph before an input that is no leaf runs in neither half, even if it leads to another input.
TEST_F(SplitBackward, InputsNeedNotBeLeaves) {
  const at::Tensor before = leaf({4, 4}), earlier = leaf({3, 4}), inner = earlier.matmul(before).sigmoid();
  const auto out = [&](const at::Tensor& in) { return in.matmul(w).tanh() + earlier.narrow(1, 0, 2); };
  const at::Tensor apart = inner.detach().requires_grad_(true);
  const Tensors one = expected({out(apart)}, {ga}, {apart, earlier, w});
  const Tensors back = half({out(inner)}, {ga}, {inner, earlier}, {.accumulate_into_inputs = false});
  expect_same({one[0], one[1]}, back, "input");
  stage_backward_weight(weights);
  EXPECT_TRUE(same(one[2], w.grad()));
  EXPECT_FALSE(before.grad().defined() || earlier.grad().defined());
  const Tensors rest = expected({inner}, {back[0]}, {before, earlier});
  torch::autograd::backward({inner}, {back[0]});
  expect_same(rest, {before.grad(), earlier.grad()}, "the part before");
}

/// An output that is an inner input; one input computed from another, both given to the stage.
TEST_F(SplitBackward, AnInnerInputMayBeAnOutput) {
  const at::Tensor inner = x * 2, twice = inner * 3;
  const Tensors back =
      half({inner, twice.matmul(w)}, {at::ones({3, 4}), ga}, {inner, twice}, {.accumulate_into_inputs = false});
  EXPECT_TRUE(same(at::ones({3, 4}), back[0]));
  EXPECT_TRUE(same(ga.matmul(w.t()), back[1]));
  stage_backward_weight(weights);
  EXPECT_TRUE(same(twice.t().matmul(ga), w.grad()));
  EXPECT_FALSE(x.grad().defined());
}

TEST_F(SplitBackward, NestedOutputsAsStageBackwardTakesThem) {
  c10::impl::GenericDict output(c10::StringType::get(), c10::AnyType::get()), grad(output.copy());
  output.insert("b", tuple_of({b, 3})), output.insert("n", 1.5);
  grad.insert("b", tuple_of({gb, 3})), grad.insert("n", IValue());
  const Tensors one = expected({a, b}, {ga, gb}, {x, y, w});
  InputBackward back =
      stage_backward_input(tuple_of({IValue(), output, tuple_of({a, at::ones({2})}), tuple_of({y})}),
                           tuple_of({1, grad, tuple_of({ga, IValue()}), IValue()}), {y, 3, x, IValue(), at::ones({1})});
  expect_same({one[1], {}, one[0], {}, {}}, back.input_grads, "slot");
  EXPECT_TRUE(back.weights.pending());
  stage_backward_weight(back.weights);
  EXPECT_TRUE(same(one[2], w.grad()));
  testing::expect_part(testing::failure([&] { stage_backward_input(tuple_of({a}), tuple_of({ga, gb}), {x}); }),
                       "expected 1 gradients for as many outputs, got 2");
}

TEST_F(SplitBackward, NoRootOrNoInputIsNoError) {
  expect_same({{}, {}}, half({ga, at::Tensor()}, {gb, gb}, {x, ga}), "slot");
  EXPECT_TRUE(weights.pending());
  stage_backward_weight(weights);
  const Tensors one = expected({a}, {ga}, {w});
  EXPECT_TRUE(half({a}, {ga}, {}).empty());
  EXPECT_FALSE(w.grad().defined());
  stage_backward_weight(weights);
  EXPECT_TRUE(same(one[0], w.grad()));
  half({}, {}, {});
  EXPECT_TRUE(stage_backward_weight(weights).empty());
}

/// test_stage_backward_weight_grad_validation, for (g), (g, undefined) and (undefined, g); 1 stands for an undefined
/// one.
TEST_F(SplitBackward, AnyOutputOfANodeMayStayWithoutGradient) {
  for (int used = 0; used < 3; ++used) {
    const auto loss = [&](const at::Tensor& in, const at::Tensor& weight) {
      const Tensors both = TwoOutputs::apply(in, weight), parts = in.matmul(weight).chunk(2, 1);
      at::Tensor sum = both[used % 2].sum() + parts[used % 2].sigmoid().sum();
      return used == 2 ? sum + both[1].sum() + parts[1].sum() : sum;
    };
    const at::Tensor in = leaf({3, 4}), weight = leaf({4, 4});
    const Tensors one = expected({loss(in, weight)}, {}, {in, weight});
    EXPECT_TRUE(same(one[0], half({loss(in, weight)}, {at::Tensor()}, {in})[0])) << used;
    stage_backward_weight(weights);
    EXPECT_TRUE(same(one[1], weight.grad())) << used;
  }
}

// --- refusals ----------------------------------------------------------------------------------------------------

TEST_F(SplitBackward, TheSecondHalfNeedsTheFirst) {
  EXPECT_NE(testing::failure([&] { stage_backward_weight(weights); }), "accepted");
  half({a}, {ga}, {x});
  stage_backward_weight(weights);
  EXPECT_NE(testing::failure([&] { stage_backward_weight(weights); }), "accepted");
  half({x.matmul(w)}, {ga}, {x});  // one that was run may be reused
  WeightBackward moved = std::move(weights);
  EXPECT_TRUE(moved.pending());
  stage_backward_weight(moved);
  EXPECT_FALSE(moved.pending());
}

TEST_F(SplitBackward, MismatchesAreToldWithAllShapes) {
  const std::string text =
      testing::failure([&] { half({ga, a}, {at::Tensor(), at::ones({1, 2})}, {x, at::Tensor()}); });
  testing::expect_part(text, "an output is f32[3,2], its gradient f32[1,2]");
  testing::expect_part(text,
                       "; stage output: (f32[3,2], f32[3,2]*), output gradient: (undefined, f32[1,2]), "
                       "input: (f32[3,4]*, undefined)");
  testing::expect_part(testing::failure([&] { half({a}, {at::Tensor()}, {x}); }), "scalar");
  EXPECT_FALSE(x.grad().defined() || w.grad().defined()) << "nothing ran";
  EXPECT_FALSE(weights.pending());
  EXPECT_TRUE(half({a}, {ga}, {x})[0].defined()) << "and the graph is as it was";
}

TEST_F(SplitBackward, RootsArePoisoned) {
  half({a, b}, {ga, gb}, {x, y});
  for (const bool done : {false, true}) {
    if (done) stage_backward_weight(weights);
    EXPECT_ANY_THROW(torch::autograd::backward({a}, {ga})) << done;
    EXPECT_ANY_THROW(torch::autograd::backward({b}, {gb})) << done;
    EXPECT_ANY_THROW(torch::autograd::backward({(b * 2).sum()})) << "another consumer of the output " << done;
    WeightBackward other;
    Tensors grads;
    EXPECT_NE(testing::failure([&] { stage_backward_input(Tensors{b}, Tensors{gb}, Tensors{x}, grads, other); }),
              "accepted");
    EXPECT_NE(testing::failure([&] { stage_backward(Tensors{b}, Tensors{gb}, Tensors{x}, grads); }), "accepted");
  }
}

/// Includes views and parameter-only outputs; a leaf among the outputs stays a leaf that other graphs may use.
TEST_F(SplitBackward, RootsOfEveryKindArePoisoned) {
  const Tensors roots = {a.t(), a.select(0, 1), w * 2, y, w};
  const Tensors grads = {ga.t(), at::randn({2}), at::randn({4, 2}), gb, at::randn({4, 2})};
  half(roots, grads, {x, y});
  stage_backward_weight(weights);
  for (int i = 0; i < 3; ++i) EXPECT_ANY_THROW(torch::autograd::backward({roots[i]}, {grads[i]})) << i;
  const at::Tensor before = w.grad().clone();
  EXPECT_TRUE(y.is_leaf() && w.is_leaf() && w.requires_grad());
  torch::autograd::backward({(y * y).sum() + w.sum()});
  EXPECT_TRUE(same(before + 1, w.grad()));
}

TEST_F(SplitBackward, NoInPlaceChangeBetweenTheHalves) {
  half({a}, {ga}, {x});
  {
    const at::NoGradGuard no_grad;
    x.add_(1);
  }
  testing::expect_part(testing::failure([&] { stage_backward_weight(weights); }), "modified by an inplace operation");
}

TEST_F(SplitBackward, AGraphNotRetainedIsGone) {
  const at::Tensor h = x.matmul(w), out = h.tanh();
  half({out}, {ga}, {x}, {.retain_graph = true});
  stage_backward_weight(weights);
  half({out}, {ga}, {x}, {.retain_graph = true});
  stage_backward_weight(weights);
  torch::autograd::backward({out}, {ga});
  try {
    torch::autograd::backward({out}, {ga});
    ADD_FAILURE() << "a freed graph ran";
  } catch (const c10::Error& error) {
    testing::expect_part(error.what(), "second time");
  }
}

/// A retained graph is restored even if W is never run.
TEST_F(SplitBackward, AnAbandonedSecondHalfPutsTheGraphBack) {
  const Tensors one = expected({b}, {gb}, {x, y, w});
  {
    WeightBackward abandoned;
    Tensors grads;
    stage_backward_input(Tensors{b}, Tensors{gb}, Tensors{x, y}, grads, abandoned, {.retain_graph = true});
  }
  EXPECT_FALSE(w.grad().defined());
  expect_same(one, expected({b}, {gb}, {x, y, w}), "gradient");
}

// --- inspection --------------------------------------------------------------------------------------------------

/// The seed's algorithm, as the oracle: nodes that reach an input; from each parameter up to the first of those.
using Groups = std::set<std::pair<std::set<void*>, std::multiset<std::string>>>;
Groups seed_groups(const Tensors& roots, const Tensors& inputs, const Tensors& params) {
  std::map<Node*, std::vector<Node*>> users;
  std::vector<Node*> queue;
  std::set<Node*> seen;
  std::vector<torch::autograd::Edge> alive;
  const auto node_of = [&](const at::Tensor& tensor) {
    alive.push_back(torch::autograd::impl::gradient_edge(tensor));
    return alive.back().function.get();
  };
  for (const at::Tensor& root : roots)
    if (seen.insert(node_of(root)).second) queue.push_back(node_of(root));
  for (size_t i = 0; i < queue.size(); ++i) {
    Node* const node = queue[i];
    for (const torch::autograd::Edge& edge : node->next_edges()) {
      if (!edge.is_valid()) continue;
      users[edge.function.get()].push_back(node);
      if (seen.insert(edge.function.get()).second) queue.push_back(edge.function.get());
    }
  }
  const auto closure = [&](std::vector<Node*> from, const std::set<Node*>& targets) {
    std::set<Node*> inside(from.begin(), from.end()), hit;
    while (!from.empty()) {
      Node* const node = from.back();
      from.pop_back();
      for (Node* user : users[node]) {
        if (targets.contains(user))
          hit.insert(user);
        else if (inside.insert(user).second)
          from.push_back(user);
      }
    }
    return std::make_pair(inside, hit);
  };
  std::vector<Node*> input_nodes;
  for (const at::Tensor& input : inputs) input_nodes.push_back(node_of(input));
  const std::set<Node*> reach_inputs = closure(input_nodes, {}).first;
  std::vector<std::pair<std::set<void*>, std::set<Node*>>> groups;
  for (const at::Tensor& param : params) {
    std::set<Node*> hit = closure({node_of(param)}, reach_inputs).second;
    if (hit.empty()) continue;
    std::set<void*> members = {param.unsafeGetTensorImpl()};
    for (size_t i = 0; i < groups.size();) {
      const bool shared = std::any_of(hit.begin(), hit.end(), [&](Node* n) { return groups[i].second.contains(n); });
      if (!shared) {
        ++i;
        continue;
      }
      members.merge(groups[i].first), hit.merge(groups[i].second);
      groups.erase(groups.begin() + i);
    }
    groups.emplace_back(std::move(members), std::move(hit));
  }
  Groups named;
  for (const auto& [members, hit] : groups) {
    std::multiset<std::string> names;
    for (Node* node : hit) names.insert(node->name());
    named.emplace(members, names);
  }
  return named;
}

struct GroupCount {
  const char* name;
  BuildStage make;
  size_t groups, intermediates;
};
TEST_F(SplitBackward, GroupsAreTheSeedsWhereNothingIsShared) {
  const GroupCount rows[] = {{"mlp", [](at::ScalarType t) { return mlp(t); }, 4, 4},
                             {"convolutions", [](at::ScalarType t) { return convolutions(t); }, 6, 6},
                             {"transformer", [](at::ScalarType t) { return transformer(t, 2, 3, 8, 2, 2); }, 12, 12}};
  for (const GroupCount& row : rows) {
    const Stage stage = build(row.make, at::kFloat);
    const MicroBatch batch = forward(stage, 0);
    const Groups oracle = seed_groups(batch.outputs, batch.inputs, stage.params);
    first_half(stage, batch, weights);
    Groups got;
    size_t intermediates = 0;
    for (const ParamGroup& group : weights.groups()) {
      std::set<void*> members;
      for (const at::Tensor& param : group.params) members.insert(param.unsafeGetTensorImpl());
      EXPECT_EQ(members.size(), group.params.size()) << row.name;
      got.emplace(members, std::multiset<std::string>(group.intermediates.begin(), group.intermediates.end()));
      intermediates += group.intermediates.size();
    }
    EXPECT_EQ(got, oracle) << row.name;
    EXPECT_EQ(got.size(), row.groups) << row.name;
    EXPECT_EQ(intermediates, row.intermediates) << row.name;
    stage_backward_weight(weights);
    EXPECT_TRUE(weights.groups().empty());
  }
}

/// Where the seed's algorithm depends on its order, ours defines one group for everything connected.
TEST_F(SplitBackward, ASharedParameterMakesOneGroup) {
  const at::Tensor in = leaf({3, 4}), tied = leaf({4, 4}), middle = leaf({4, 4}), bias = leaf({4});
  const at::Tensor out = at::addmm(bias, in.matmul(tied).matmul(middle), tied);
  half({out}, {at::randn({3, 4})}, {in});
  const std::vector<ParamGroup> groups = weights.groups();
  ASSERT_EQ(groups.size(), 2u);
  const ParamGroup& large = groups[groups[0].params.size() == 2 ? 0 : 1];
  EXPECT_EQ(large.params.size(), 2u);
  EXPECT_EQ(large.intermediates, (std::vector<std::string>{"AddmmBackward0", "MmBackward0"}));
}

TEST_F(SplitBackward, HeldBytesCountEachMemoryOnce) {
  EXPECT_EQ(weights.held_bytes(), 0u);
  const Stage stage = mlp(at::kFloat, 4, 6, 8);
  const MicroBatch batch = forward(stage, 0);
  first_half(stage, batch, weights);
  EXPECT_EQ(weights.held_bytes(), 4u * 6 * 8 * sizeof(float)) << "the gradient of each linear's output";
  stage_backward_weight(weights);
  EXPECT_EQ(weights.held_bytes(), 0u);
  const at::Tensor v = leaf({4, 2}), g = leaf({4}), c = leaf({4});
  half({x.matmul(w) + x.matmul(v)}, {ga}, {x});
  EXPECT_EQ(weights.held_bytes(), 3u * 2 * sizeof(float)) << "one gradient, wanted by both products";
  stage_backward_weight(weights);
  half({at::layer_norm(x, {4}, g, c)}, {at::randn({3, 4})}, {x});
  EXPECT_EQ(weights.held_bytes(), 2u * 4 * sizeof(float)) << "a norm is through, what it made is held";
  stage_backward_weight(weights);
  EXPECT_TRUE(g.grad().defined() && c.grad().defined());
}

}  // namespace
}  // namespace plumbline::backward
