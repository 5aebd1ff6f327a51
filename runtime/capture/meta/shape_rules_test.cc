#include "runtime/capture/meta/shape_rules.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>
#include <torch/nn/module.h>

#include <functional>
#include <set>

#include "runtime/capture/capture.h"
#include "runtime/capture/testing/meta_graphs.h"
#include "runtime/testing/refusal.h"

namespace plumbline::capture {
namespace {

using Tensors = std::vector<at::Tensor>;
using testing::meta_like;

template <class... T>
Tensors all(const std::tuple<T...>& tuple) {
  return std::apply([](const auto&... t) { return Tensors{t...}; }, tuple);
}

/// An expression and its arguments; each output is compared with the CPU's in sizes, strides, dtype and flag.
struct Expression {
  std::string name;
  Tensors inputs;
  std::function<Tensors(const Tensors&)> f;
};

std::vector<Expression> expressions() {
  const at::Tensor m = at::randn({3, 4}).requires_grad_(), n = at::randn({3, 4}), p = at::rand({3, 4}).requires_grad_();
  const at::Tensor turned = at::randn({4, 3}).t().detach().requires_grad_();
  const at::Tensor image = at::randn({2, 4, 6, 6}).requires_grad_();
  const at::Tensor last = at::randn({2, 4, 6, 6}).contiguous(at::MemoryFormat::ChannelsLast).requires_grad_();
  const at::Tensor whole = at::randint(0, 3, {3, 4}), i32 = whole.to(at::kInt), truth = m.detach() > 0;
  const at::Tensor half = at::randn({3, 4}).to(at::kBFloat16), numbers = at::randn({4}).to(at::kComplexFloat);
  const at::Tensor w4 = at::randn({4}).requires_grad_(), b4 = at::randn({4}).requires_grad_(), zero = at::zeros({4}),
                   one = at::ones({4});
  std::vector<Expression> out;
  const auto add = [&](const char* name, const Tensors& in, const std::function<Tensors(const Tensors&)>& f) {
    out.push_back({name, in, f});
  };
  const auto unary = [&](const char* name, at::Tensor (*f)(const at::Tensor&), bool whole_too = true) {
    for (const at::Tensor& x : {m, turned, half, last})
      add(name, {x}, [=](const Tensors& in) { return Tensors{f(in[0])}; });
    if (whole_too) add(name, {whole}, [=](const Tensors& in) { return Tensors{f(in[0])}; });
  };
  unary("relu", [](const at::Tensor& x) { return at::relu(x); });
  unary("abs", [](const at::Tensor& x) { return at::abs(x); });
  unary("hardswish", [](const at::Tensor& x) { return at::hardswish(x); }, false);
  unary("hardtanh", [](const at::Tensor& x) { return at::hardtanh(x); }, false);
  unary("log_sigmoid", [](const at::Tensor& x) { return at::log_sigmoid(x); }, false);
  unary("logit", [](const at::Tensor& x) { return at::logit(x, 0.1); }, false);
  unary("isnan", [](const at::Tensor& x) { return at::isnan(x); });
  unary("nan_to_num", [](const at::Tensor& x) { return at::nan_to_num(x); });
  unary("logical_not", [](const at::Tensor& x) { return at::logical_not(x); });
  unary("flip", [](const at::Tensor& x) { return at::flip(x, {0}); });
  unary("roll", [](const at::Tensor& x) { return at::roll(x, 1, 0); });
  unary("max", [](const at::Tensor& x) { return at::max(x); });
  unary("min", [](const at::Tensor& x) { return at::min(x); });
  unary("prod", [](const at::Tensor& x) { return at::prod(x); });
  unary("nansum", [](const at::Tensor& x) { return at::nansum(x); });
  unary("median", [](const at::Tensor& x) { return at::median(x); });
  unary("std", [](const at::Tensor& x) { return at::std(x, at::IntArrayRef{1}, true, true); }, false);
  unary("var", [](const at::Tensor& x) { return at::var(x); }, false);
  unary("masked_fill_", [](const at::Tensor& x) { return x.clone().masked_fill_(x > 0, 1); });
  unary("index_fill", [](const at::Tensor& x) { return at::index_fill(x, 0, at::arange(2), 1); });
  add("complex", {numbers},
      [](const Tensors& in) { return Tensors{at::abs(in[0]), at::angle(in[0]), at::view_as_real(in[0] * in[0])}; });
  add("two parts", {m, n},
      [](const Tensors& in) { return Tensors{at::complex(in[0], in[1]), at::polar(in[0], in[1])}; });
  add("two", {m, turned, i32}, [](const Tensors& in) {
    return Tensors{at::floor_divide(in[0], in[1]), at::logical_and(in[0], in[2]),
                   at::logical_or(in[0], in[1]),   at::logical_xor(in[0], in[2]),
                   at::rsub(in[0], in[1]),         at::prelu(in[0], in[1][0][0].view({1}))};
  });
  add("where", {truth, m, n[0], i32, half}, [](const Tensors& in) {
    return Tensors{at::where(in[0], in[1], in[2]), at::where(in[0], in[1], 0.0), at::where(in[0], in[3], in[4]),
                   at::where(in[0][0], in[1].t().contiguous().t(), in[1]), at::where(in[0], 1.0, 0.0)};
  });
  add("reductions", {m, whole}, [](const Tensors& in) {
    return Tensors{at::count_nonzero(in[0], at::IntArrayRef{1}), at::dot(in[0][0], in[0][1]), at::trace(in[0]),
                   at::nansum(in[0], {1}, true), at::prod(in[1], at::kFloat)};
  });
  add("ranks", {m}, [](const Tensors& in) {
    Tensors r = all(at::kthvalue(in[0], 2, 1, true));
    for (const Tensors& more :
         {all(at::median(in[0], 1, false)), all(at::std_mean(in[0], at::IntArrayRef{0}, false, true)),
          all(at::var_mean(in[0], at::IntArrayRef{0}))})
      r.insert(r.end(), more.begin(), more.end());
    return r;
  });
  add("losses", {p, at::rand({3, 4})}, [](const Tensors& in) {
    Tensors r;
    for (int64_t reduction : {0, 1, 2})
      r.insert(r.end(),
               {at::binary_cross_entropy(in[0], in[1], {}, reduction), at::huber_loss(in[0], in[1], reduction)});
    return r;
  });
  add("nll of images", {image, at::randint(0, 4, {2, 6, 6})}, [](const Tensors& in) {
    return Tensors{at::cross_entropy_loss(in[0], in[1]), at::cross_entropy_loss(in[0], in[1], {}, 0)};
  });
  add("cross entropy", {m, at::randint(0, 4, {3})}, [](const Tensors& in) {
    return Tensors{at::cross_entropy_loss(in[0], in[1]), at::cross_entropy_loss(in[0], in[1], {}, 0, -100, 0.1)};
  });
  add("look-up", {m, whole}, [](const Tensors& in) {
    return Tensors{
        at::embedding(in[0], at::clamp_max(in[1], 2)), at::index_select(in[0], 1, in[1][0]), at::take(in[0], in[1]),
        in[0].index({at::clamp_max(in[1], 2)}),        at::gather(in[0], 1, in[1]),          at::one_hot(in[1], 5)};
  });
  add("search", {m}, [](const Tensors& in) {
    const at::Tensor edges = at::cumsum(at::ones_like(in[0][0]), 0);
    return Tensors{at::bucketize(in[0], edges), at::searchsorted(edges, in[0], true)};
  });
  add("random", {p}, [](const Tensors& in) {
    return Tensors{at::multinomial(in[0], 2),
                   at::multinomial(in[0][0], 3),
                   at::randperm(4, in[0].options().dtype(at::kLong)),
                   at::randperm(4, std::optional<at::Generator>(), in[0].options().dtype(at::kInt)),
                   at::bernoulli(in[0]),
                   std::get<0>(at::native_dropout(in[0], 0.5, true)),
                   at::dropout(in[0], 0.5, true)};
  });
  for (const at::Tensor& x : {image, last}) {
    add("layers of images", {x, w4, b4, zero, one}, [](const Tensors& in) {
      const at::Tensor &x = in[0], &w = in[1], &b = in[2];
      at::Tensor zero = in[3].clone(), one = in[4].clone();
      return Tensors{at::adaptive_avg_pool2d(x, {2, 3}),
                     at::batch_norm(x, w, b, zero, one, true, 0.1, 1e-5, true),
                     at::batch_norm(x, w, b, zero, one, false, 0.1, 1e-5, true),
                     at::batch_norm(x, {}, {}, {}, {}, true, 0.1, 1e-5, true),
                     std::get<1>(at::native_batch_norm(x, w, b, zero, one, true, 0.1, 1e-5)),
                     std::get<0>(at::_native_batch_norm_legit(x, w, b, zero, one, true, 0.1, 1e-5)),
                     std::get<0>(at::_native_batch_norm_legit(x, w, b, true, 0.1, 1e-5)),
                     at::group_norm(x, 2, w, b),
                     std::get<0>(at::native_group_norm(x, w, b, x.size(0), 4, 36, 2, 1e-5)),
                     at::instance_norm(x, w, b, {}, {}, true, 0.1, 1e-5, true),
                     at::layer_norm(x, {6, 6}),
                     at::channel_shuffle(x, 2),
                     at::reflection_pad2d(x, {1, 2, 0, 1})};
    });
    add("convolutions",
        {x, at::randn({6, 4, 3, 3}).requires_grad_(), at::randn({6, 2, 3, 2}), at::randn({4, 3, 2, 2}), b4},
        [](const Tensors& in) {
          return Tensors{at::conv2d(in[0], in[1], {}, {2, 1}, at::IntArrayRef{1, 0}),
                         at::conv2d(in[0], in[2], {}, {1, 1}, at::IntArrayRef{0, 0}, {1, 2}, 2),
                         at::conv2d(in[0][0], in[1], {}, {1, 1}, at::IntArrayRef{0, 0}),
                         at::conv_transpose2d(in[0], in[3], {}, {2, 2}, {1, 1}, {1, 0}, 2),
                         at::conv2d(in[0], in[1], {}, {1, 1}, std::string_view("same"))};
        });
  }
  add("convolutions of sequences",
      {at::randn({2, 4, 9}), at::randn({3, 4, 3}), at::randn({1, 4, 5, 5, 5}), at::randn({2, 4, 2, 2, 2})},
      [](const Tensors& in) {
        return Tensors{at::conv1d(in[0], in[1], {}, 2, 1), at::conv3d(in[2], in[3]),
                       at::adaptive_avg_pool3d(in[2], {2, 2, 2})};
      });
  add("samplers", {image, at::rand({2, 3, 5, 2}), at::randn({1, 2, 4, 4, 4}), at::rand({1, 2, 3, 5, 3})},
      [](const Tensors& in) {
        return Tensors{at::grid_sampler(in[0], in[1], 0, 0, false), at::grid_sampler(in[2], in[3], 0, 0, false),
                       at::im2col(in[0], {2, 3}, {1, 1}, {1, 0}, {2, 1})};
      });
  add("matrices", {m, at::randn({2, 3, 5}), at::randn({2, 5, 4}), at::randn({6, 4})}, [](const Tensors& in) {
    return Tensors{at::addbmm(in[0], in[1], in[2]), at::_cdist_forward(in[0], in[3], 2.0, std::nullopt),
                   at::layer_norm(in[0], {4}, in[0][0], in[0][1])};
  });
  add("weight norm", {at::randn({3, 4}).requires_grad_(), at::randn({3, 1})},
      [](const Tensors& in) { return all(at::_weight_norm_interface(in[0], in[1], 0)); });
  add("backwards", {m.detach(), w4.detach(), b4.detach(), at::arange(6).view({2, 3})}, [](const Tensors& in) {
    const at::Tensor mean = in[0].mean(1, true), factor = in[0].std(1, true, true).reciprocal();
    Tensors out =
        all(at::native_layer_norm_backward(in[0], in[0], {4}, mean, factor, in[1], in[2], {true, true, true}));
    out.push_back(at::embedding_dense_backward(in[0].expand({2, 3, 4}), in[3], 7, -1, false));
    return out;
  });
  add("backward of attention", {at::randn({2, 5, 3, 8}), at::randn({2, 3, 5, 8})}, [](const Tensors& in) {
    const at::Tensor q = in[0].transpose(1, 2), k = in[1];
    const auto [out, sums] = at::_scaled_dot_product_flash_attention_for_cpu(q, k, k, 0.0, true);
    return all(at::_scaled_dot_product_flash_attention_for_cpu_backward(out, q, k, k, out, sums, 0.0, true));
  });
  add("attention", {at::randn({2, 5, 3, 8}).requires_grad_(), at::randn({5, 5})}, [](const Tensors& in) {
    const at::Tensor q = in[0].transpose(1, 2), k = in[0].contiguous().transpose(1, 2);
    return Tensors{at::scaled_dot_product_attention(q, k, q, {}, 0.0, true),
                   at::scaled_dot_product_attention(q, k, q, in[1]), at::scaled_dot_product_attention(q, k, k, {}, 0.5),
                   at::scaled_dot_product_attention(q[0], k[0], k[0]),
                   at::scaled_dot_product_attention(q, k, k, in[1] > 0)};
  });
  return out;
}

graph::Graph captured(const Expression& expression, const Tensors& inputs, Tensors& outputs) {
  torch::nn::Module root("Root");
  std::vector<NamedTensor> named;
  for (size_t i = 0; i < inputs.size(); ++i) named.push_back({"x" + std::to_string(i), inputs[i]});
  return capture(root, [&](const Tensors& in) { return outputs = expression.f(in); }, named);
}

TEST(ShapeRules, EachGivesWhatTheCpuGives) {
  std::set<std::string> unused;
  for (detail::NamedShapeRule& builtin : detail::builtin_shape_rules()) {
    unused.insert(builtin.op);
    add_shape_rule(builtin.op, [&unused, builtin](std::span<const c10::IValue> arguments) {
      unused.erase(builtin.op);
      return builtin.rule(arguments);
    });
  }
  for (const Expression& expression : expressions()) {
    SCOPED_TRACE(expression.name + " of " + graph::describe(expression.inputs[0]));
    Tensors theirs, ours;
    const graph::Graph on_cpu = captured(expression, expression.inputs, theirs);
    try {
      testing::expect_same_graph(captured(expression, meta_like(expression.inputs), ours), on_cpu);
    } catch (const std::exception& error) {
      ADD_FAILURE() << error.what();
      continue;
    }
    for (size_t i = 0; i < theirs.size(); ++i) EXPECT_EQ(ours[i].strides(), theirs[i].strides()) << "output " << i;
  }
  for (detail::NamedShapeRule& builtin : detail::builtin_shape_rules()) add_shape_rule(builtin.op, builtin.rule);
  for (const std::string& op : unused) ADD_FAILURE() << "no expression uses the rule of " << op;
}

TEST(ShapeRules, WindowsThatTheCpuRefusesAreRefused) {
  const at::Tensor image = at::zeros({1, 2, 3, 3}), large = at::zeros({1, 2, 4, 4}), small = at::zeros({2, 2, 2, 2});
  const auto convolved = [](const Tensors& in) {
    return Tensors{at::conv2d(in[0], in[1], {}, at::IntArrayRef{2, 2}, at::IntArrayRef{0, 0})};
  };
  const auto standing = [](const Tensors& in) {
    return Tensors{at::conv2d(in[0], in[1], {}, at::IntArrayRef{0, 1}, at::IntArrayRef{0, 0})};
  };
  const auto transposed = [](const Tensors& in) {
    return Tensors{at::conv_transpose2d(in[0], in[1], {}, at::IntArrayRef{0, 1})};
  };
  const auto columns = [](const Tensors& in) { return Tensors{at::im2col(in[0], {4, 4}, {1, 1}, {0, 0}, {2, 2})}; };
  const auto standing_columns = [](const Tensors& in) {
    return Tensors{at::im2col(in[0], {2, 2}, {1, 1}, {0, 0}, {0, 1})};
  };
  const std::vector<Expression> refused = {{"a kernel of 4 at steps of 2 on 3 pixels", {image, large}, convolved},
                                           {"a convolution of stride 0", {image, small}, standing},
                                           {"a transposed convolution of stride 0", {image, small}, transposed},
                                           {"columns of 4 at steps of 2 on 3 pixels", {image}, columns},
                                           {"columns of stride 0", {image}, standing_columns}};
  const auto outcome = [](const Expression& expression, const Tensors& inputs) {
    Tensors outputs;
    return testing::failure<std::exception>([&] { captured(expression, inputs, outputs); });
  };
  for (const Expression& expression : refused) {
    EXPECT_NE(outcome(expression, expression.inputs), "accepted") << expression.name << " on the CPU";
    EXPECT_NE(outcome(expression, meta_like(expression.inputs)), "accepted") << expression.name << " on meta";
  }
  const Expression fitting = {"a kernel as large as its input", {at::zeros({1, 2, 4, 4}), large}, convolved};
  EXPECT_EQ(outcome(fitting, meta_like(fitting.inputs)), "accepted");
}

}  // namespace
}  // namespace plumbline::capture
