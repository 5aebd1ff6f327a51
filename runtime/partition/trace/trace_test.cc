#include "runtime/partition/trace/trace.h"

#include <ATen/CPUGeneratorImpl.h>

#include <algorithm>

#include "runtime/graph/testing/parse.h"
#include "runtime/partition/testing/trace_testing.h"
#include "runtime/testing/refusal.h"

namespace plumbline::partition {
namespace {

using M = TracedModule;

TEST(TraceJoint, AnMlpIsTheGraphThatAotAutogradMakes) {
  const auto module = module_of([](M& m) {
    const at::Tensor w = m.parameter("w", {6, 4}), b = m.parameter("b", {6}), v = m.parameter("v", {3, 6});
    m.body = [=](const Tensors& in) { return Tensors{at::linear(at::gelu(at::linear(in[0], w, b)), v)}; };
  });
  const JointTrace trace = expect_bitwise(*module, {at::randn({5, 4})});
  std::vector<std::string> names;
  for (const JointNode& node : trace.graph.nodes) names.push_back(node.name);
  // x w^T + b, gelu, times v^T; then the gradients of v, of gelu, of w and of b
  const std::vector<std::string> expected{
      "primals_1",     "primals_2", "primals_3", "primals_4", "tangents_1", "t",    "addmm", "gelu",
      "t_1",           "mm",        "t_2",       "mm_1",      "t_3",        "t_4",  "mm_2",  "t_5",
      "gelu_backward", "t_6",       "mm_3",      "t_7",       "sum_1",      "view", "t_8"};
  EXPECT_EQ(names, expected);
}

TEST(TraceJoint, ATransformerBlockByHandAndFused) {
  for (const bool fused : {false, true}) {
    const auto module = module_of([&](M& m) {
      const at::Tensor g1 = m.parameter("g1", {16}), b1 = m.parameter("b1", {16}), qkv = m.parameter("qkv", {48, 16}),
                       bias = m.parameter("bias", {48}), out = m.parameter("out", {16, 16}),
                       g2 = m.parameter("g2", {16}), b2 = m.parameter("b2", {16}), up = m.parameter("up", {32, 16}),
                       up_b = m.parameter("up_b", {32}), down = m.parameter("down", {16, 32});
      m.body = [=](const Tensors& in) {
        const at::Tensor& x = in[0];
        const auto heads = at::linear(at::layer_norm(x, {16}, g1, b1), qkv, bias).view({2, 5, 3, 4, 4});
        const auto parts = heads.permute({2, 0, 3, 1, 4}).unbind(0);
        const at::Tensor mixed =
            fused ? at::scaled_dot_product_attention(parts[0], parts[1], parts[2], {}, 0.0, true)
                  : at::matmul(at::softmax(at::matmul(parts[0], parts[1].transpose(-2, -1)) * 0.5, -1), parts[2]);
        const at::Tensor y = x + at::linear(mixed.transpose(1, 2).reshape({2, 5, 16}), out);
        return Tensors{y + at::linear(at::gelu(at::linear(at::layer_norm(y, {16}, g2, b2), up, up_b)), down)};
      };
    });
    SCOPED_TRACE(fused);
    const JointTrace trace = expect_bitwise(*module, {at::randn({2, 5, 16}).requires_grad_()});
    EXPECT_EQ(calls_of(trace, "aten::native_layer_norm"), 2);
    EXPECT_EQ(calls_of(trace, "aten::_scaled_dot_product_flash_attention_for_cpu"), fused ? 1 : 0);
    EXPECT_EQ(calls_of(trace, "aten::_softmax"), fused ? 0 : 1);
  }
}

TEST(TraceJoint, BatchNormReturnsItsStatisticsInsteadOfWritingThem) {
  for (const bool training : {true, false}) {
    const auto module = module_of([&](M& m) {
      const at::Tensor k = m.parameter("k", {4, 3, 3, 3}), g = m.parameter("g", {4}), b = m.parameter("b", {4});
      const at::Tensor mean = m.register_buffer("mean", at::randn({4})),
                       var = m.register_buffer("var", at::rand({4}) + 1);
      const at::Tensor batches = m.register_buffer("batches", at::zeros({}, at::kLong));
      m.body = [=](const Tensors& in) {
        if (training) batches.add_(1);
        at::Tensor y = at::conv2d(in[0], k, {}, 1, 1);
        // twice, so that the second one reads what the first has written
        y = at::relu(at::batch_norm(y, g, b, mean, var, training, 0.1, 1e-5, false));
        return Tensors{at::batch_norm(y * 2, g, b, mean, var, training, 0.1, 1e-5, false)};
      };
    });
    SCOPED_TRACE(training);
    const JointTrace trace = expect_bitwise(*module, {at::randn({2, 3, 6, 6})});
    EXPECT_EQ(calls_of(trace, "aten::_native_batch_norm_legit_functional"), training ? 2 : 0);
    EXPECT_EQ(calls_of(trace, "aten::native_batch_norm"), training ? 0 : 2);
    EXPECT_EQ(trace.written.size(), training ? 3u : 0u);
  }
}

TEST(TraceJoint, InstanceNormWithStatistics) {
  const auto module = module_of([](M& m) {
    const at::Tensor g = m.parameter("g", {3}), b = m.parameter("b", {3});
    const at::Tensor mean = m.register_buffer("mean", at::randn({3})),
                     var = m.register_buffer("var", at::rand({3}) + 1);
    m.body = [=](const Tensors& in) {
      return Tensors{at::instance_norm(in[0], g, b, mean, var, true, 0.1, 1e-5, false)};
    };
  });
  EXPECT_EQ(expect_bitwise(*module, {at::randn({2, 3, 4, 4}).requires_grad_()}).written.size(), 2u);
}

TEST(TraceJoint, CrossEntropyWithEmbeddingAndTiedHead) {
  const auto module = module_of([](M& m) {
    const at::Tensor table = m.parameter("table", {11, 6}), position = m.parameter("position", {4, 6});
    m.body = [=](const Tensors& in) {
      const at::Tensor x = at::tanh(at::embedding(table, in[0], 3) + position);
      return Tensors{at::cross_entropy_loss(at::linear(x, table).view({-1, 11}), in[1].view({-1}), {},
                                            at::Reduction::Mean, 2, 0.1)};
    };
  });
  const JointTrace trace =
      expect_bitwise(*module, {at::randint(11, {3, 4}, at::kLong), at::randint(11, {3, 4}, at::kLong)});
  EXPECT_EQ(calls_of(trace, "aten::embedding_dense_backward"), 1);
}

TEST(TraceJoint, DropoutDrawsAsEagerDoes) {
  const auto module = module_of([](M& m) {
    const at::Tensor w = m.parameter("w", {8, 8});
    m.body = [=](const Tensors& in) {
      const at::Tensor x = at::dropout(at::linear(in[0], w), 0.3, true);
      const at::Tensor heads = x.view({1, 2, 3, 8});
      return Tensors{at::dropout(at::relu(x), 0.5, true) + at::rand_like(x) * x, at::dropout(x, 0.0, true),
                     at::scaled_dot_product_attention(heads, heads, heads, {}, 0.25)};
    };
  });
  const JointTrace trace = expect_bitwise(*module, {at::randn({6, 8})});
  EXPECT_EQ(calls_of(trace, "aten::bernoulli"), 3);
  EXPECT_EQ(calls_of(trace, "aten::native_dropout"), 0);
  for (const JointNode& node : trace.graph.nodes)
    EXPECT_EQ(node.seeded, node.op == "aten::bernoulli" || node.op == "aten::rand_like") << node.name;
}

TEST(TraceJoint, DropoutAsOneOperator) {
  const auto module = module_of([](M& m) {
    const at::Tensor w = m.parameter("w", {8, 8});
    m.body = [=](const Tensors& in) {
      return Tensors{at::dropout(at::dropout(at::linear(in[0], w), 0.5, true), 0.75, true)};
    };
  });
  // 1 / (1 - p) is a power of two, so that both ways round alike
  const JointTrace trace = expect_bitwise(*module, {at::randn({6, 8})}, /*native_dropout=*/true);
  EXPECT_EQ(calls_of(trace, "aten::native_dropout"), 2);
  EXPECT_EQ(calls_of(trace, "aten::native_dropout_backward"), 2);
  EXPECT_EQ(calls_of(trace, "aten::bernoulli"), 0);
}

TEST(TraceJoint, WritesInPlaceBecomeValues) {
  const auto module = module_of([](M& m) {
    const at::Tensor w = m.parameter("w", {6, 6});
    m.body = [=](const Tensors& in) {
      at::Tensor h = at::linear(in[0], w);
      h.mul_(2.0);
      h.select(0, 1).add_(in[0].select(0, 0));
      h.narrow(1, 2, 3).copy_(in[0].narrow(1, 0, 3));
      at::Tensor y = (h * 2).sigmoid_() + h;
      y.sub_(1).relu_();
      y = y * h;
      y.slice(1, 0, 2).zero_();
      y.masked_fill_(in[0] > 1, 0.5);
      at::Tensor z = at::zeros({4, 6});
      z.index_put_({at::arange(4)}, y);
      z.transpose(0, 1).add_(1);
      return Tensors{y * z};
    };
  });
  const JointTrace trace = expect_bitwise(*module, {at::randn({4, 6}).requires_grad_()});
  EXPECT_TRUE(trace.written.empty());
}

TEST(TraceJoint, BuffersThatAreWrittenComeOut) {
  const auto module = module_of([](M& m) {
    const at::Tensor w = m.parameter("w", {4, 4});
    const at::Tensor average = m.register_buffer("average", at::zeros({4})),
                     table = m.register_buffer("table", at::ones({3, 4})),
                     read = m.register_buffer("read", at::ones({4}));
    m.body = [=](const Tensors& in) {
      const at::Tensor y = at::linear(in[0], w) * read + average.clone();
      {
        const c10::NoGradGuard no_grad;
        average.mul_(0.9).add_(y.mean(0), 0.1);
        table.select(0, 1).copy_(average);
        table.narrow(0, 2, 1).add_(3);
      }
      return Tensors{y + table.sum(0)};
    };
  });
  const JointTrace trace = expect_bitwise(*module, {at::randn({5, 4})});
  EXPECT_EQ(trace.written, (std::vector<int>{1, 2}));
  EXPECT_EQ(trace.static_inputs, (std::vector<int>{0, 1, 2, 3}));
}

TEST(TraceJoint, OutputsOfEveryKind) {
  const auto module = module_of([](M& m) {
    const at::Tensor w = m.parameter("w", {4, 4}), frozen = m.parameter("frozen", {4}),
                     unused = m.parameter("unused", {2});
    frozen.set_requires_grad(false);
    m.body = [=](const Tensors& in) {
      const at::Tensor y = at::linear(in[0], w) + frozen;
      const auto [values, indices] = y.max(1);
      // a view, its base, a view of an input, an input, None, integers, what needs no gradient, a parameter, one twice
      return Tensors{y.view({2, -1}).t(), y, in[0].t(), in[0],  at::Tensor(), indices,
                     in[1] * 2,           w, values,    values, frozen,       y.detach()};
    };
  });
  const JointTrace trace = expect_bitwise(*module, {at::randn({6, 4}).requires_grad_(), at::randn({3})});
  EXPECT_EQ(trace.tangent_of, (std::vector<int>{0, 1, 2, 3, 7, 8, 9}));
  EXPECT_EQ(trace.graph.outputs[4], kNoNode);
  EXPECT_EQ(trace.graph.nodes[trace.graph.outputs[3]].kind, JointKind::Primal);
  EXPECT_EQ(trace.primals.size(), 4u) << "a parameter that the graph never uses is no primal";
  EXPECT_EQ(trace.static_inputs, (std::vector<int>{0, 1}));
}

TEST(TraceJoint, NothingToDifferentiate) {
  const auto module = module_of([](M& m) { m.body = [](const Tensors& in) { return Tensors{at::relu(in[0]) + 1}; }; });
  const JointTrace trace = expect_bitwise(*module, {at::randn({3})});
  EXPECT_TRUE(trace.tangent_of.empty());
  EXPECT_EQ(trace.graph.outputs.back(), kNoNode);
}

TEST(TraceJoint, AParameterUsedOftenAddsItsGradientsAsTheEngineDoes) {
  const auto module = module_of([](M& m) {
    const at::Tensor w = m.parameter("w", {8, 8}), b = m.parameter("b", {8});
    m.body = [=](const Tensors& in) {
      at::Tensor x = in[0];
      for (int i = 0; i < 4; ++i) x = at::tanh(at::linear(x, w, b)) + x * b + at::linear(x, w.t());
      return Tensors{x.sum(), x * w.mean()};
    };
  });
  expect_bitwise(*module, {at::randn({3, 8}).requires_grad_()});
}

TEST(TraceJoint, ConstantsAndNumbers) {
  const auto module = module_of([](M& m) {
    const at::Tensor w = m.parameter("w", {3});
    const at::Tensor scale = at::tensor({1.5f, 2.0f, -3.0f});
    m.body = [=](const Tensors& in) {
      at::Tensor x = in[0] * w * scale + scale;
      x = x * 2.0 - 1 + at::full({3}, 0.25) + at::arange(3) / 7;
      return Tensors{x.pow(3) / (x.abs() + 1e-3), scale, at::where(x > 0, x, scale)};
    };
  });
  const JointTrace trace = expect_bitwise(*module, {at::randn({2, 3})});
  EXPECT_EQ(trace.constants.size(), 1u);
}

TEST(TraceJoint, GradientsSwitchedOffInPlaces) {
  const auto module = module_of([](M& m) {
    const at::Tensor w = m.parameter("w", {4, 4});
    m.body = [=](const Tensors& in) {
      at::Tensor target;
      {
        const c10::NoGradGuard no_grad;
        target = at::linear(in[0], w).softmax(1);
      }
      const at::Tensor y = at::linear(in[0], w);
      return Tensors{(y - target).square().mean() + (y.detach() * y).sum()};
    };
  });
  expect_bitwise(*module, {at::randn({5, 4})});
}

/// Each: something whose backward is made of more than one call, from x of f32[4,6] with a gradient.
TEST(TraceJoint, ManyOperators) {
  const at::Tensor index = at::tensor({2, 0, 2, 3}, at::kLong);
  const std::vector<std::pair<std::string, std::function<Tensors(const at::Tensor&)>>> cases{
      {"split, chunk, unbind, cat, stack",
       [](const at::Tensor& x) {
         const Tensors a = x.split(2, 1), b = x.chunk(2, 0), c = x.unbind(0);
         return Tensors{at::cat({a[0], a[2]}, 0), b[1], at::stack({c[0], c[3]})};
       }},
      {"index, gather, scatter",
       [=](const at::Tensor& x) {
         const at::Tensor where = index.view({4, 1}).expand({4, 6});
         return Tensors{at::index(x, {index}), x.gather(0, where), at::zeros_like(x).scatter_add(0, where, x),
                        x.index_select(0, index), x.take_along_dim(where, 0)};
       }},
      {"optional index",
       [=](const at::Tensor& x) {
         return Tensors{at::index(x, {std::nullopt, index}), x.index_put({index}, x * 2, true)};
       }},
      {"reductions",
       [](const at::Tensor& x) {
         return Tensors{x.sum(0),
                        x.mean(),
                        x.std(1),
                        x.var(),
                        x.norm(),
                        x.logsumexp(1),
                        x.prod(1),
                        x.amax(0),
                        x.cumsum(1),
                        std::get<0>(x.sort(1)),
                        std::get<0>(x.topk(2, 1)),
                        std::get<0>(x.median(1))};
       }},
      {"activations",
       [](const at::Tensor& x) {
         return Tensors{at::elu(x),      at::silu(x),           at::softplus(x),     at::leaky_relu(x),
                        at::hardtanh(x), at::log_sigmoid(x),    at::gelu(x, "tanh"), at::mish(x),
                        at::glu(x),      at::log_softmax(x, 1), at::hardswish(x),    at::selu(x)};
       }},
      {"pooling and padding",
       [](const at::Tensor& x) {
         const at::Tensor image = x.view({1, 1, 4, 6});
         return Tensors{at::max_pool2d(image, {2, 2}),
                        at::avg_pool2d(image, {2, 2}),
                        at::adaptive_avg_pool2d(image, {2, 2}),
                        at::pad(image, {1, 1, 1, 1}, "reflect"),
                        at::constant_pad_nd(image, {1, 0}),
                        at::upsample_nearest2d(image, at::IntArrayRef({8, 12})),
                        at::upsample_bilinear2d(image, at::IntArrayRef({8, 12}), false)};
       }},
      {"convolutions",
       [](const at::Tensor& x) {
         const at::Tensor image = x.view({1, 2, 3, 4});
         const at::Tensor k = at::sin(at::arange(16.0f)).view({2, 2, 2, 2});
         return Tensors{at::conv2d(image, k, {}, 2), at::conv_transpose2d(image, k),
                        at::conv2d(image, k.narrow(1, 0, 1), {}, 1, 1, 1, 2),
                        at::conv1d(x.view({1, 4, 6}), at::cos(at::arange(24.0f)).view({2, 4, 3}))};
       }},
      {"einsum and products",
       [](const at::Tensor& x) {
         return Tensors{at::einsum("ij,kj->ik", {x, x}),
                        at::bmm(x.view({2, 2, 6}), x.view({2, 6, 2})),
                        x.t().matmul(x),
                        at::addmm(x, x.matmul(x.t()), x, 0.5, 2),
                        at::baddbmm(x.view({2, 2, 6}), x.view({2, 2, 6}), x.t().matmul(x).expand({2, 6, 6})),
                        at::outer(x.select(0, 0), x.select(0, 1)),
                        at::linalg_inv(x.matmul(x.t()) + at::eye(4) * 5)};
       }},
      {"norms",
       [](const at::Tensor& x) {
         return Tensors{at::group_norm(x.view({2, 4, 3}), 2), at::layer_norm(x, {6}), at::rms_norm(x, {6}),
                        at::batch_norm(x, {}, {}, {}, {}, true, 0.1, 1e-5, false),
                        at::instance_norm(x.view({2, 2, 6}), {}, {}, {}, {}, true, 0.1, 1e-5, false)};
       }},
      {"losses",
       [=](const at::Tensor& x) {
         return Tensors{at::mse_loss(x, x.detach() * 2),
                        at::l1_loss(x, x.detach() + 1),
                        at::smooth_l1_loss(x, at::ones_like(x)),
                        at::huber_loss(x, at::ones_like(x)),
                        at::nll_loss(x.log_softmax(1), index),
                        at::kl_div(x, x.detach().softmax(1)),
                        at::binary_cross_entropy_with_logits(x, at::ones_like(x)),
                        at::cosine_similarity(x, x.detach() + 1, 1),
                        at::binary_cross_entropy(x.sigmoid(), at::ones_like(x))};
       }},
      {"shapes",
       [](const at::Tensor& x) {
         return Tensors{x.t().contiguous(),
                        x.t().reshape({-1}),
                        x.unsqueeze(0).expand({3, 4, 6}),
                        x.repeat({2, 1}),
                        x.flip({0}),
                        x.roll(1, 1),
                        x.tril(),
                        at::diagonal(x),
                        x.as_strided({3, 2}, {2, 3}, 1),
                        x.unfold(1, 2, 2),
                        x.squeeze(0),
                        x.movedim(0, 1),
                        at::constant_pad_nd(x, {-1, 1}),
                        x.narrow(1, 1, 2),
                        x.repeat_interleave(2, 0)};
       }},
      {"dtypes and complex numbers",
       [](const at::Tensor& x) {
         return Tensors{x.to(at::kDouble).exp(), x.to(at::kBFloat16) * 2, at::fft_rfft(x).abs(),
                        at::view_as_real(at::fft_fft(x).conj().resolve_conj()),
                        at::real(at::complex(x, x * 2) * at::complex(x, x).conj())};
       }},
      {"clamps and comparisons",
       [](const at::Tensor& x) {
         return Tensors{x.clamp(-0.5, 0.5),
                        at::maximum(x, x.flip({0})),
                        at::fmod(x, 0.7),
                        x.clamp_min(0),
                        at::lerp(x, x.flip({1}), 0.3),
                        at::addcmul(x, x, x, 2),
                        at::masked_fill(x, x > 0, 1.0),
                        at::atan2(x, x + 2),
                        x.erf(),
                        at::threshold(x, 0.1, 20)};
       }},
  };
  for (const auto& [name, f] : cases) {
    SCOPED_TRACE(name);
    const auto module = module_of([&](M& m) { m.body = [&f](const Tensors& in) { return f(in[0]); }; });
    at::manual_seed(5);
    expect_bitwise(*module, {at::randn({4, 6}).requires_grad_()});
  }
}

TEST(TraceJoint, ChannelsLastKeepsItsStrides) {
  const auto module = module_of([](M& m) {
    const at::Tensor k = m.parameter("k", {4, 3, 3, 3});
    m.body = [=](const Tensors& in) { return Tensors{at::relu(at::conv2d(in[0], k, {}, 1, 1))}; };
  });
  expect_bitwise(*module, {at::randn({2, 3, 8, 8}).contiguous(at::MemoryFormat::ChannelsLast).requires_grad_()});
}

// --- what cannot be traced -------------------------------------------------------------------------------------------

std::string refusal_of(const std::function<Tensors(const Tensors&)>& body, const Tensors& inputs) {
  const auto module = module_of([&](M& m) { m.body = body; });
  const graph::Graph graph = capture_of(*module, module->body, inputs);
  return testing::refusal([&] { trace_joint(graph, inputs); });
}

TEST(TraceJoint, RefusesShapesReadFromData) {
  const std::string why =
      refusal_of([](const Tensors& in) { return Tensors{at::relu(in[0]).index({in[0] > 0})}; }, {at::randn({4})});
  testing::expect_part(why, "trace: at aten::index.Tensor, node ");
  testing::expect_part(why, "the shape of its result depends on the data");
  testing::expect_part(refusal_of([](const Tensors& in) { return Tensors{in[0].nonzero()}; }, {at::randn({4})}),
                       "aten::nonzero");
}

TEST(TraceJoint, RefusesNumbersReadFromTensors) {
  const graph::Graph graph = graph::parse_graph(R"(input %0: f32[3] = "x"
%1: f32[] = aten::sum(%0, None)
%2: float = aten::item(%1)
%3: f32[3] = aten::mul.Scalar(%0, %2)
return %3
)");
  const std::string why = testing::refusal([&] { trace_joint(graph, {at::ones({3})}); });
  testing::expect_part(why, "trace: at aten::_local_scalar_dense, node 1 (");
  testing::expect_part(why, "it reads a number from a tensor");
}

TEST(TraceJoint, RefusesExplicitGenerators) {
  graph::Graph graph = graph::parse_graph(R"(input %0: f32[3] = "x"
%1: f32[3] = aten::bernoulli.p(%0, 0.5, None)
return %1
)");
  graph.nodes[0].arguments[2].constant = at::detail::createCPUGenerator();
  testing::expect_part(testing::refusal([&] { trace_joint(graph, {at::ones({3})}); }),
                       "trace: at aten::bernoulli.p, node 0: an explicit");
}

TEST(TraceJoint, RefusesOtherInputsThanCaptured) {
  const graph::Graph graph = graph::parse_graph("input %0: f32[3] = \"x\"\n%1: f32[3] = aten::neg(%0)\nreturn %1\n");
  testing::expect_part(testing::refusal([&] { trace_joint(graph, {}); }), "takes 1 inputs, got 0");
  testing::expect_part(testing::refusal([&] { trace_joint(graph, {at::ones({4})}); }),
                       "input \"x\" is to be as captured, f32[3], got f32[4]");
}

TEST(TraceJoint, RefusesSparseGradients) {
  const auto module = module_of([](M& m) {
    const at::Tensor table = m.parameter("table", {5, 2});
    m.body = [=](const Tensors& in) { return Tensors{at::embedding(table, in[0], -1, false, true)}; };
  });
  const Tensors inputs{at::tensor({1, 2}, at::kLong)};
  const graph::Graph graph = capture_of(*module, module->body, inputs);
  testing::expect_part(testing::refusal([&] { trace_joint(graph, inputs); }), "in the backward");
}

TEST(TraceJoint, RefusesToWriteSharedMemory) {
  const auto module = module_of([](M& m) {
    const at::Tensor base = m.register_buffer("base", at::ones({4}));
    const at::Tensor part = m.register_buffer("part", base.narrow(0, 0, 2));
    m.body = [=](const Tensors& in) {
      base.add_(1);
      return Tensors{in[0] * part};
    };
  });
  const Tensors inputs{at::ones({2})};
  const graph::Graph graph = capture_of(*module, module->body, inputs);
  const std::string why = testing::refusal([&] { trace_joint(graph, inputs); });
  testing::expect_part(why, "the graph writes \"base\", whose memory \"part\" shares");
}

}  // namespace
}  // namespace plumbline::partition
