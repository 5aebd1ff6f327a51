// Compares I then W with the full backward by plain autograd on an equal copy, bitwise, on every kind of graph that a
// stage may have.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "runtime/backward/testing/backward_test_models.h"

namespace plumbline::backward {
namespace {

using namespace backward_test;

// --- a parameter in several places -------------------------------------------------------------------------------

/// test_stage_backward_weight_shared_weights
Stage weight_at_two_depths(at::ScalarType dtype) {
  Leaves leaves{dtype};
  const at::Tensor w = leaves.param({8, 8}), v = leaves.param({8, 8});
  return leaves.stage(leaves.one({6, 8}),
                      [=](const Tensors& in) { return Tensors{in[0].matmul(w).tanh().matmul(v).tanh().matmul(w)}; });
}

Stage weight_and_bias_five_times(at::ScalarType dtype) {
  Leaves leaves{dtype};
  const at::Tensor w = leaves.param({8, 8}), b = leaves.param({8}), u = leaves.param({8, 8});
  return leaves.stage([dtype] { return Tensors{Leaves::input({6, 8}, dtype), Leaves::input({5, 6, 8}, dtype)}; },
                      [=](const Tensors& in) {
                        at::Tensor h = in[0];
                        for (const at::Tensor& step : in[1].unbind(0))
                          h = (at::linear(h, w, b) + at::linear(step, u, b)).tanh();
                        return Tensors{h};
                      });
}

Stage loss_with_weight_norm(at::ScalarType dtype) {
  Leaves leaves{dtype};
  const at::Tensor w = leaves.param({8, 8}), v = leaves.param({8, 8});
  return leaves.stage(leaves.one({6, 8}), [=](const Tensors& in) {
    const at::Tensor y = in[0].matmul(w).tanh().matmul(v);
    return Tensors{(y * y).mean() + 0.1 * w.norm() + (v * v).sum()};
  });
}

/// W/||W|| is computed once and used twice: a graph of parameters with two paths into the graph of inputs.
Stage normalized_weight_used_twice(at::ScalarType dtype) {
  Leaves leaves{dtype};
  const at::Tensor w = leaves.param({8, 8}), v = leaves.param({8, 8});
  return leaves.stage(leaves.one({6, 8}), [=](const Tensors& in) {
    const at::Tensor n = w / w.norm();
    return Tensors{in[0].matmul(n).tanh().matmul(v).tanh().matmul(n)};
  });
}

/// A tensor shared by all micro-batches need not be a leaf, if autograd saved nothing for it.
Stage views_of_weights_made_once(at::ScalarType dtype) {
  Leaves leaves{dtype};
  const at::Tensor w = leaves.param({8, 8}), b = leaves.param({8}), all = leaves.param({2, 8, 8});
  const at::Tensor turned = w.t(), both = w + all.select(0, 1), row = all.select(0, 0).select(0, 3);
  return leaves.stage(leaves.one({6, 8}), [=](const Tensors& in) {
    return Tensors{(in[0].matmul(turned).tanh().matmul(both) + b).matmul(turned) * row};
  });
}

/// Low-rank factors, and a weight that is cast once for two uses.
Stage factors_and_a_shared_cast(at::ScalarType dtype) {
  Leaves leaves{dtype};
  const at::Tensor a = leaves.param({8, 2}), b = leaves.param({2, 8}), w = leaves.param({8, 8});
  return leaves.stage(leaves.one({6, 8}), [=](const Tensors& in) {
    const at::Tensor wide = w.to(at::kDouble), x = in[0].to(at::kDouble);
    const at::Tensor h = (x.matmul(wide).tanh().matmul(wide)).to(dtype);
    return Tensors{h + in[0].matmul(a).matmul(b) + in[0].matmul(a.matmul(b))};
  });
}

/// A weight that is also added as if it were an activation, and one whose norm scales an activation.
Stage weight_as_activation(at::ScalarType dtype) {
  Leaves leaves{dtype};
  const at::Tensor w = leaves.param({8, 8}), token = leaves.param({1, 8});
  return leaves.stage(leaves.one({6, 8}), [=](const Tensors& in) {
    const at::Tensor h = at::cat({token, in[0].matmul(w)}) * w.norm();
    return Tensors{at::where(h > 0, h, w.narrow(0, 0, 7)).matmul(w)};
  });
}

// --- outputs of every kind ---------------------------------------------------------------------------------------

Stage outputs_from_parameters_only(at::ScalarType dtype) {
  Leaves leaves{dtype};
  const at::Tensor w = leaves.param({8, 8}), v = leaves.param({8, 8}), alone = leaves.param({3});
  return leaves.stage(leaves.one({6, 8}), [=](const Tensors& in) {
    return Tensors{w.tanh(), in[0].matmul(w).matmul(v), (v * v).sum(), alone * 2, w.t()};
  });
}

Stage outputs_without_gradient(at::ScalarType dtype) {
  Leaves leaves{dtype};
  const at::Tensor w = leaves.param({8, 8});
  return leaves.stage(leaves.one({6, 8}), [=](const Tensors& in) {
    const at::Tensor y = in[0].matmul(w);
    return Tensors{y.detach(), y.argmax(1), y, at::ones({2})};
  });
}

Stage inputs_and_parameters_as_outputs(at::ScalarType dtype) {
  Leaves leaves{dtype};
  const at::Tensor w = leaves.param({8, 8}), b = leaves.param({8});
  return leaves.stage([dtype] { return Tensors{Leaves::input({6, 8}, dtype), Leaves::input({4}, dtype)}; },
                      [=](const Tensors& in) { return Tensors{in[0], w, in[0].matmul(w) + b, b, in[1]}; });
}

/// nn.Linear on three dimensions, chunks, a view of an input, a view of nothing but itself.
Stage views_as_outputs(at::ScalarType dtype) {
  Leaves leaves{dtype};
  const at::Tensor w = leaves.param({8, 8}), b = leaves.param({8});
  return leaves.stage(leaves.one({2, 3, 8}), [=](const Tensors& in) {
    const at::Tensor y = at::linear(in[0], w, b);
    const Tensors chunks = y.chunk(2, 2);
    return Tensors{y, chunks[0], chunks[1], in[0].view({6, 8}), y.view_as(y), y.expand({2, 2, 3, 8}), w.view({64})};
  });
}

Stage one_output_twice(at::ScalarType dtype) {
  Leaves leaves{dtype};
  const at::Tensor w = leaves.param({8, 8});
  return leaves.stage(leaves.one({6, 8}), [=](const Tensors& in) {
    const at::Tensor h = in[0].matmul(w), y = h.tanh();
    return Tensors{y, h, y, y.sum()};
  });
}

// --- inputs of every kind ----------------------------------------------------------------------------------------

Stage unused_inputs(at::ScalarType dtype) {
  Leaves leaves{dtype};
  const at::Tensor w = leaves.param({8, 8});
  leaves.param({4});  // also unused
  return leaves.stage(
      [dtype] {
        return Tensors{Leaves::input({3}, dtype), Leaves::input({6, 8}, dtype), at::ones({2}, at::kLong), at::Tensor(),
                       Leaves::input({6, 8}, dtype, false)};
      },
      [=](const Tensors& in) { return Tensors{(in[1] * in[4]).matmul(w)}; });
}

Stage no_input_needs_a_gradient(at::ScalarType dtype) {
  Stage stage = mlp(dtype);
  stage.inputs = [dtype] { return Tensors{Leaves::input({6, 8}, dtype, false)}; };
  return stage;
}

Stage no_input_at_all(at::ScalarType dtype) {
  Leaves leaves{dtype};
  const at::Tensor w = leaves.param({8, 8});
  return leaves.stage([] { return Tensors{}; }, [=](const Tensors&) { return Tensors{w.matmul(w).tanh()}; });
}

Stage no_parameter_needs_a_gradient(at::ScalarType dtype) {
  Stage stage = mlp(dtype);
  for (const at::Tensor& p : stage.params) p.requires_grad_(false);
  return stage;
}

Stage frozen_parameters_between(at::ScalarType dtype) {
  Stage stage = mlp(dtype);
  for (int i : {0, 1, 4, 7}) stage.params[i].requires_grad_(false);
  return stage;
}

Stage two_inputs_meet_twice(at::ScalarType dtype) {
  Leaves leaves{dtype};
  const at::Tensor w = leaves.param({8, 8}), v = leaves.param({8, 8});
  return leaves.stage([dtype] { return Tensors{Leaves::input({6, 8}, dtype), Leaves::input({6, 8}, dtype)}; },
                      [=](const Tensors& in) {
                        const at::Tensor h = in[0].matmul(w) * in[1].matmul(w);
                        return Tensors{h.matmul(v).softmax(-1) * in[1] + in[0], h.matmul(h.t()).matmul(in[1])};
                      });
}

// --- nodes of every kind -----------------------------------------------------------------------------------------

Stage custom_with_two_outputs(at::ScalarType dtype) {
  Leaves leaves{dtype};
  const at::Tensor w = leaves.param({8, 8}), v = leaves.param({8, 8}), u = leaves.param({8, 8});
  return leaves.stage(leaves.one({6, 8}), [=](const Tensors& in) {
    const Tensors both = TwoOutputs::apply(in[0], w), first = TwoOutputs::apply(both[0], v);
    const Tensors second = TwoOutputs::apply(both[1], u);  // one output of each of these two is used
    return Tensors{first[0] + second[1]};
  });
}

/// test_stage_backward_weight_multi_output_intermediate
Stage chunks_and_unbind(at::ScalarType dtype) {
  Leaves leaves{dtype};
  const at::Tensor w = leaves.param({16, 8}), b = leaves.param({16}), v = leaves.param({2, 8, 8});
  return leaves.stage(leaves.one({6, 8}), [=](const Tensors& in) {
    const Tensors parts = at::linear(in[0], w, b).chunk(2, 1), weights = v.unbind(0);
    const at::Tensor h = parts[1].matmul(weights[1]) * parts[0];
    return Tensors{h.unbind(0)[2], at::linear(h, w).chunk(2, 1)[0], h.matmul(weights[0]).unbind(1)[3]};
  });
}

Stage norms(at::ScalarType dtype) {
  Leaves leaves{dtype};
  const at::Tensor g = leaves.gain(8), b = leaves.param({8}), w = leaves.param({8, 8}), only = leaves.gain(8);
  return leaves.stage(leaves.one({2, 8, 3}), [=](const Tensors& in) {
    const at::Tensor h = at::group_norm(in[0], 4, g, b).transpose(1, 2);
    const at::Tensor k = at::layer_norm(h.matmul(w), {8}, g, b);  // the same gain again
    return Tensors{at::rms_norm(k, {8}, only) + at::layer_norm(k, {8}, only)};
  });
}

Stage bare_biases_and_gains(at::ScalarType dtype) {
  Leaves leaves{dtype};
  const at::Tensor g = leaves.gain(8), b = leaves.param({8}), s = leaves.param({}), slope = leaves.gain(1);
  return leaves.stage(leaves.one({6, 8}),
                      [=](const Tensors& in) { return Tensors{at::prelu((in[0] * g + b) * s, slope) * g + b}; });
}

Stage convolution_and_batch_norm(at::ScalarType dtype) { return convolutions(dtype); }

Stage other_convolutions(at::ScalarType dtype) {
  Leaves leaves{dtype};
  const at::Tensor w = leaves.param({4, 2, 3}), b = leaves.param({4}), up = leaves.param({4, 2, 3, 3});
  return leaves.stage(leaves.one({3, 4, 9}), [=](const Tensors& in) {
    const at::Tensor h = at::conv1d(in[0], w, b, 1, 1, 1, 2).relu();  // groups
    return Tensors{at::conv_transpose2d(h.view({3, 4, 3, 3}), up), at::conv1d(h, w, b, 1, 2, 2, 2)};
  });
}

/// An embedding that no other node needs, a tied projection, and positions that are a parameter.
Stage embedding(at::ScalarType dtype) {
  Leaves leaves{dtype};
  const at::Tensor words = leaves.param({11, 8}), positions = leaves.param({5, 8}), w = leaves.param({8, 8});
  return leaves.stage([dtype] { return Tensors{at::randint(11, {3, 5}, at::kLong), Leaves::input({3, 5, 8}, dtype)}; },
                      [=](const Tensors& in) {
                        const at::Tensor h = (at::embedding(words, in[0]) + positions + in[1]).matmul(w);
                        const at::Tensor logits = at::linear(h, words).view({15, 11});
                        return Tensors{at::cross_entropy_loss(logits.to(at::kFloat), in[0].view({15}))};
                      });
}

/// All members of the family of matrix products, each with parameters on either side.
Stage matrix_products(at::ScalarType dtype) {
  Leaves leaves{dtype};
  const at::Tensor w = leaves.param({8, 8}), v = leaves.param({8}), many = leaves.param({2, 8, 8}),
                   b = leaves.param({6});
  return leaves.stage(leaves.one({6, 8}), [=](const Tensors& in) {
    const at::Tensor x = in[0], stacked = at::stack({x, x * 2});
    return Tensors{at::mm(x, w),
                   at::mv(x, v),
                   at::addmv(b, x, v),
                   at::dot(x.select(0, 1), v),
                   at::bmm(stacked, many),
                   at::baddbmm(stacked, stacked, many, 0.5, 2),
                   at::addmm(v, x, w, 0.5, 3),
                   at::addmm(x, x, w),
                   at::mm(w, x.t()),
                   at::einsum("bi,kij->kbj", {x, many}),
                   at::addmm(x, x.matmul(x.t()), x)};
  });
}

Stage attention_over_parameters(at::ScalarType dtype) {
  Leaves leaves{dtype};
  const at::Tensor keys = leaves.param({2, 4, 8}), values = leaves.param({2, 4, 8}), w = leaves.param({8, 8});
  return leaves.stage(leaves.one({2, 5, 8}), [=](const Tensors& in) {
    const at::Tensor q = in[0].matmul(w).unsqueeze(1);
    return Tensors{at::scaled_dot_product_attention(q, keys.unsqueeze(1), values.unsqueeze(1))};
  });
}

Stage transformer_with_tied_weight(at::ScalarType dtype) { return tied_transformer(dtype); }
Stage transformer_without_sharing(at::ScalarType dtype) { return transformer(dtype, 2, 5, 8, 2, 2); }

Stage in_place_operations(at::ScalarType dtype) {
  Leaves leaves{dtype};
  const at::Tensor w = leaves.param({8, 8}), b = leaves.param({8}), row = leaves.param({8});
  return leaves.stage(leaves.one({6, 8}), [=](const Tensors& in) {
    at::Tensor h = in[0].matmul(w);
    h.add_(b);
    h.select(0, 2).copy_(row);
    h.narrow(1, 0, 4).mul_(row.narrow(0, 0, 4));
    h.select(0, 4).copy_(in[0].select(0, 1) * b);
    at::Tensor kept = at::zeros({6, 8}, h.options());
    kept.select(0, 0).copy_(row);
    kept.narrow(0, 1, 5).copy_(h.narrow(0, 1, 5));
    return Tensors{h.relu_().matmul(w), kept.sigmoid_()};
  });
}

Stage recurrent_layer(at::ScalarType dtype) {
  Leaves leaves{dtype};
  const at::Tensor wi = leaves.param({12, 8}), wh = leaves.param({12, 4}), bi = leaves.param({12}),
                   bh = leaves.param({12});
  return leaves.stage([dtype] { return Tensors{Leaves::input({3, 6, 8}, dtype), Leaves::input({1, 6, 4}, dtype)}; },
                      [=](const Tensors& in) {
                        const auto [out, last] =
                            at::gru(in[0], in[1], {wi, wh, bi, bh}, true, 1, 0, true, false, false);
                        return Tensors{out, last};
                      });
}

// --- hooks of users ----------------------------------------------------------------------------------------------

Stage tensor_hooks(at::ScalarType dtype) {
  Leaves leaves{dtype};
  const at::Tensor w = leaves.param({8, 8}), v = leaves.param({8, 8}), b = leaves.param({8});
  const auto counts = std::make_shared<HookCounts>();
  add_tensor_hook(w, counts, "w"), add_tensor_hook(b, counts, "b");
  Stage stage = leaves.stage(leaves.one({6, 8}), [=](const Tensors& in) {
    add_tensor_hook(in[0], counts, "input");
    const at::Tensor product = at::addmm(b, in[0], w), h = product.tanh(), weight = v.tanh();
    add_tensor_hook(product, counts, "output of the frontier"), add_tensor_hook(h, counts, "intermediate");
    add_tensor_hook(weight, counts, "of parameters only");
    const at::Tensor y = at::addmm(b, h, weight).matmul(w);
    add_tensor_hook(y, counts, "output");
    return Tensors{y};
  });
  stage.hooks = counts;
  return stage;
}

Stage hooks_after_accumulation(at::ScalarType dtype) {
  Stage stage = tied_transformer(dtype);
  int i = 0;
  for (const at::Tensor& p : stage.params) add_accumulated_hook(p, stage.hooks, "parameter " + std::to_string(i++));
  return stage;
}

/// Which kinds of hook are on every node of the graph of one stage, the frontier included.
enum : unsigned { kPre = 1, kPost = 2, kRetain = 4 };

Stage node_hooks(at::ScalarType dtype, unsigned kinds) {
  Leaves leaves{dtype};
  const at::Tensor w = leaves.param({8, 8}), b = leaves.param({8}), v = leaves.param({8, 8}), g = leaves.gain(8);
  Stage stage = leaves.stage(leaves.one({6, 8}), {});
  stage.forward = [=, counts = stage.hooks, retained = stage.retained](const Tensors& in) {
    const auto hook = [&](const at::Tensor& tensor, const std::string& name) {
      torch::autograd::Node& node = *torch::autograd::impl::gradient_edge(tensor).function;
      if (kinds & kPre) node.add_pre_hook(std::make_unique<UserPreHook>(counts, "before " + name));
      if (kinds & kPost) node.add_post_hook(std::make_unique<UserPostHook>(counts, "after " + name));
      if (kinds & kRetain) tensor.retain_grad(), retained->push_back(tensor);
      return tensor;
    };
    const at::Tensor first = hook(at::addmm(b, in[0], w), "addmm"), h = hook(first.tanh(), "tanh");
    const at::Tensor weight = hook(v.tanh(), "tanh of a weight");
    const at::Tensor normed = hook(at::layer_norm(h, {8}, g, b), "layer norm");
    return Tensors{hook(hook(normed.matmul(weight), "mm") + b, "add")};
  };
  return stage;
}
Stage retained_gradients(at::ScalarType dtype) { return node_hooks(dtype, kRetain); }
Stage retained_gradients_behind_hooks(at::ScalarType dtype) { return node_hooks(dtype, kRetain | kPre | kPost); }
Stage hooks_before_nodes(at::ScalarType dtype) { return node_hooks(dtype, kPre); }
Stage hooks_after_nodes(at::ScalarType dtype) { return node_hooks(dtype, kPost); }
Stage hooks_on_both_sides(at::ScalarType dtype) { return node_hooks(dtype, kPre | kPost); }
Stage hooks_on_accumulators(at::ScalarType dtype) {
  Stage stage = mlp(dtype);
  const auto handles = std::make_shared<std::vector<torch::autograd::Edge>>();
  for (size_t i = 0; i < stage.params.size(); ++i) {
    handles->push_back(torch::autograd::impl::gradient_edge(stage.params[i]));
    torch::autograd::Node& node = *handles->back().function;
    node.add_pre_hook(std::make_unique<UserPreHook>(stage.hooks, "before " + std::to_string(i)));
    node.add_post_hook(std::make_unique<UserPostHook>(stage.hooks, "after " + std::to_string(i)));
    if (i % 2) add_tensor_hook(stage.params[i], stage.hooks, "tensor " + std::to_string(i));
    add_accumulated_hook(stage.params[i], stage.hooks, "accumulated " + std::to_string(i));
  }
  stage.forward = [inner = stage.forward, handles](const Tensors& in) { return inner(in); };
  return stage;
}

// --- the table ---------------------------------------------------------------------------------------------------

struct Row {
  const char* name;
  Stage (*make)(at::ScalarType);
};
#define ROW(function) \
  Row { #function, function }
const Row kRows[] = {{"plain_mlp", [](at::ScalarType dtype) { return mlp(dtype); }},
                     ROW(weight_at_two_depths),
                     ROW(weight_and_bias_five_times),
                     ROW(loss_with_weight_norm),
                     ROW(normalized_weight_used_twice),
                     ROW(views_of_weights_made_once),
                     ROW(factors_and_a_shared_cast),
                     ROW(weight_as_activation),
                     ROW(outputs_from_parameters_only),
                     ROW(outputs_without_gradient),
                     ROW(inputs_and_parameters_as_outputs),
                     ROW(views_as_outputs),
                     ROW(one_output_twice),
                     ROW(unused_inputs),
                     ROW(no_input_needs_a_gradient),
                     ROW(no_input_at_all),
                     ROW(no_parameter_needs_a_gradient),
                     ROW(frozen_parameters_between),
                     ROW(two_inputs_meet_twice),
                     ROW(custom_with_two_outputs),
                     ROW(chunks_and_unbind),
                     ROW(norms),
                     ROW(bare_biases_and_gains),
                     ROW(convolution_and_batch_norm),
                     ROW(other_convolutions),
                     ROW(embedding),
                     ROW(matrix_products),
                     ROW(attention_over_parameters),
                     ROW(transformer_with_tied_weight),
                     ROW(transformer_without_sharing),
                     ROW(in_place_operations),
                     ROW(recurrent_layer),
                     ROW(tensor_hooks),
                     ROW(hooks_after_accumulation),
                     ROW(retained_gradients),
                     ROW(retained_gradients_behind_hooks),
                     ROW(hooks_before_nodes),
                     ROW(hooks_after_nodes),
                     ROW(hooks_on_both_sides),
                     ROW(hooks_on_accumulators)};
#undef ROW
void PrintTo(const Row& row, std::ostream* out) { *out << row.name; }

class SplitModels : public ::testing::TestWithParam<std::tuple<Row, at::ScalarType>> {
 protected:
  BuildStage make = std::get<0>(GetParam()).make;
  at::ScalarType dtype = std::get<1>(GetParam());
};

/// test_stage_backward_weight
TEST_P(SplitModels, OneMicroBatch) { expect_same(run_full(make, dtype), run_halves(make, dtype)); }

/// test_stage_backward_weight_multiple_iters
TEST_P(SplitModels, TenMicroBatchesAddUp) { expect_same(run_full(make, dtype, 10), run_halves(make, dtype, 10)); }

TEST_P(SplitModels, TheSecondHalfMayComeLater) { expect_same(run_full(make, dtype, 4), run_halves(make, dtype, 4, 2)); }

/// Compares split, split, full on one graph with three full backwards.
TEST_P(SplitModels, ARetainedGraphIsWholeAgain) {
  const Stage whole = build(make, dtype), halved = build(make, dtype);
  const MicroBatch one = forward(whole, 0), other = forward(halved, 0);
  for (const bool keep : {true, true, false}) full_backward(one, keep);
  for (int time = 0; time < 2; ++time) {
    WeightBackward weights;
    first_half(halved, other, weights, {.retain_graph = true});
    stage_backward_weight(weights);
  }
  full_backward(other, false);
  expect_same(grads_of(whole.params), grads_of(halved.params), "parameter");
  expect_same(grads_of(one.inputs), grads_of(other.inputs), "input");
  EXPECT_EQ(*whole.hooks, *halved.hooks);
}

INSTANTIATE_TEST_SUITE_P(Rows, SplitModels,
                         ::testing::Combine(::testing::ValuesIn(kRows), ::testing::Values(at::kFloat, at::kBFloat16)),
                         [](const auto& info) {
                           return std::string(std::get<0>(info.param).name) +
                                  (std::get<1>(info.param) == at::kFloat ? "_f32" : "_bf16");
                         });

}  // namespace
}  // namespace plumbline::backward
