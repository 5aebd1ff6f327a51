#include "runtime/capture/capture.h"

#include <ATen/CPUGeneratorImpl.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/nn.h>
#include <torch/types.h>

#include <algorithm>
#include <set>
#include <thread>

#include "runtime/capture/call.h"
#include "runtime/graph/io/text.h"
#include "runtime/graph/run/program.h"
#include "runtime/graph/testing/parse.h"

namespace plumbline::capture {
namespace {

using Tensors = std::vector<at::Tensor>;

/// A module whose forward is a lambda; each case registers its submodules.
struct Model : torch::nn::Module {
  Model() : torch::nn::Module("Model") {}
  at::Tensor forward(const at::Tensor& x) { return body({x})[0]; }
  ForwardFunction body;
};
using ModelPtr = std::shared_ptr<Model>;
using Build = std::function<void(Model&)>;

ModelPtr model_of(const Build& build) {
  at::manual_seed(3);
  auto model = std::make_shared<Model>();
  build(*model);
  return model;
}

/// A model with a parameter "w" of [4,4] and a buffer "count" of [4], called through call() as the child "body".
ModelPtr model_with(
    const std::function<Tensors(const at::Tensor& x, const at::Tensor& w, const at::Tensor& count)>& f) {
  return model_of([&](Model& root) {
    auto body = root.register_module("body", std::make_shared<Model>());
    const at::Tensor w = body->register_parameter("w", at::randn({4, 4}));
    const at::Tensor count = body->register_buffer("count", at::zeros({4}));
    auto results = std::make_shared<Tensors>();
    body->body = [=](const Tensors& in) {
      *results = f(in[0], w, count);
      return Tensors{at::Tensor()};
    };
    root.body = [body, results](const Tensors& in) mutable {
      call(body, in[0]);
      return std::exchange(*results, {});
    };
  });
}

graph::Graph capture_of(const ModelPtr& model, const Tensors& inputs) {
  std::vector<NamedTensor> named;
  for (size_t i = 0; i < inputs.size(); ++i) named.push_back({"x" + std::to_string(i), inputs[i]});
  return capture(*model, model->body, named);
}

Tensors clones(const Tensors& tensors) {
  Tensors out;
  for (const at::Tensor& t : tensors) out.push_back(t.defined() ? t.detach().clone() : t);
  return out;
}

at::Tensor generator_state() { return at::detail::getDefaultCPUGenerator().get_state(); }

void expect_equal(const Tensors& ours, const Tensors& theirs, const std::string& what) {
  ASSERT_EQ(ours.size(), theirs.size()) << what;
  for (size_t i = 0; i < ours.size(); ++i) {
    ASSERT_EQ(ours[i].defined(), theirs[i].defined()) << what << ' ' << i;
    ASSERT_TRUE(!ours[i].defined() || at::equal(ours[i], theirs[i])) << what << ' ' << i;
  }
}

/// Runs once with a seed; returns the outputs, then the gradients of all parameters and inputs, then the buffers.
Tensors everything(Model& model, const ForwardFunction& forward, const Tensors& inputs, uint64_t seed) {
  Tensors leaves = clones(inputs), roots, weights;
  for (at::Tensor& leaf : leaves)
    if (leaf.is_floating_point()) leaf.requires_grad_(true);
  model.zero_grad(true);
  at::manual_seed(seed);
  const Tensors outputs = forward(leaves);
  Tensors all = clones(outputs);
  for (const at::Tensor& output : outputs)
    if (output.requires_grad()) {
      roots.push_back(output);
      weights.push_back(at::randn_like(output));
    }
  if (!roots.empty()) torch::autograd::backward(roots, weights);
  for (const at::Tensor& leaf : leaves) all.push_back(leaf.grad());
  for (const at::Tensor& parameter : model.parameters())
    all.push_back(parameter.grad().defined() ? parameter.grad().clone() : at::Tensor());
  for (const at::Tensor& buffer : model.buffers()) all.push_back(buffer.clone());
  return all;
}

/// The replay must equal the module bit for bit, on the captured input and on others.
graph::Graph expect_faithful(const std::string& name, const ModelPtr& model, const Tensors& inputs) {
  SCOPED_TRACE(name);
  const Tensors buffers = model->buffers(), buffers_before = clones(buffers), parameters = clones(model->parameters());
  const at::Tensor generator = generator_state();
  Tensors captured_inputs = clones(inputs);
  for (at::Tensor& input : captured_inputs)
    if (input.is_floating_point()) input.requires_grad_(true);
  graph::Graph graph = capture_of(model, captured_inputs);
  expect_equal(buffers, buffers_before, "buffer after capture");
  expect_equal(model->parameters(), parameters, "parameter after capture");
  EXPECT_TRUE(at::equal(generator, generator_state())) << "capture left another generator state";
  const graph::Program program(graph);
  const ForwardFunction replay = [&](const Tensors& in) {
    Tensors outputs;
    program.run(in, outputs);
    return outputs;
  };
  for (uint64_t seed = 0; seed < 3; ++seed) {
    SCOPED_TRACE("run " + std::to_string(seed));
    Tensors fresh = clones(inputs);
    for (at::Tensor& t : fresh)
      if (seed > 0) t.copy_(t.is_floating_point() ? at::randn_like(t) : at::randint_like(t, 4));
    const Tensors start = clones(buffers), start_parameters = clones(model->parameters());
    const Tensors theirs = everything(*model, model->body, fresh, seed);
    const at::NoGradGuard no_grad;
    for (size_t i = 0; i < buffers.size(); ++i) buffers[i].copy_(start[i]);
    for (size_t i = 0; i < start_parameters.size(); ++i) model->parameters()[i].copy_(start_parameters[i]);
    const at::AutoGradMode grad(true);
    expect_equal(everything(*model, replay, fresh, seed), theirs, "result");
  }
  return graph;
}

TEST(Capture, ModulesReplayBitForBit) {
  namespace nn = torch::nn;
  expect_faithful("MLP", model_of([](Model& m) {
                    auto a = m.register_module("a", nn::Linear(4, 8)), b = m.register_module("b", nn::Linear(8, 4));
                    m.body = [=](const Tensors& in) mutable { return Tensors{call(b, at::relu(call(a, in[0])))}; };
                  }),
                  {at::randn({2, 4})});
  const graph::Graph graph = expect_faithful(
      "transformer block", model_of([](Model& m) {
        auto tok = m.register_module("tok", nn::Embedding(11, 8));
        auto norm = m.register_module("norm", nn::LayerNorm(nn::LayerNormOptions({8})));
        auto qkv = m.register_module("qkv", nn::Linear(8, 24)), out = m.register_module("out", nn::Linear(8, 8));
        m.register_parameter("head_weight", tok->weight);
        m.body = [=](const Tensors& in) mutable {
          const at::Tensor h = call(tok, in[0]);
          const Tensors heads = at::linear(call(norm, h), qkv->weight, qkv->bias).view({2, 5, 3, 2, 4}).unbind(2);
          const auto head = [&](int i) { return heads[i].transpose(1, 2); };
          const at::Tensor a = at::scaled_dot_product_attention(head(0), head(1), head(2), {}, 0.25, true);
          const at::Tensor y = h + at::gelu(at::linear(a.transpose(1, 2).reshape({2, 5, 8}), out->weight, out->bias));
          return Tensors{at::linear(y, tok->weight), y};
        };
      }),
      {at::randint(4, {2, 5})});
  const auto tied = std::find_if(graph.attributes.begin(), graph.attributes.end(),
                                 [](const graph::Attribute& a) { return !a.aliases.empty(); });
  ASSERT_NE(tied, graph.attributes.end());
  EXPECT_EQ(std::set<std::string>({tied->name, tied->aliases.at(0)}),
            std::set<std::string>({"tok.weight", "head_weight"}));
  EXPECT_EQ(tied->aliases.size(), 1u);
  for (const bool train : {true, false})
    expect_faithful("conv and batch norm", model_of([&](Model& m) {
                      auto conv = m.register_module("conv", nn::Conv2d(nn::Conv2dOptions(2, 3, 3).padding(1)));
                      auto norm = m.register_module("norm", nn::BatchNorm2d(3));
                      m.train(train);
                      m.body = [=](const Tensors& in) mutable { return Tensors{call(norm, call(conv, in[0]))}; };
                    }),
                    {at::randn({2, 2, 5, 5})});
  expect_faithful("dropout", model_of([](Model& m) {
                    auto drop = m.register_module("drop", nn::Dropout(0.5));
                    m.body = [=](const Tensors& in) mutable { return Tensors{call(drop, in[0])}; };
                  }),
                  {at::randn({8, 8})});
  expect_faithful("LSTM", model_of([](Model& m) {
                    auto lstm = m.register_module("lstm", nn::LSTM(nn::LSTMOptions(4, 3).num_layers(2).dropout(0.5)));
                    m.body = [=](const Tensors& in) mutable {
                      const auto [y, state] = lstm->forward(in[0]);
                      return Tensors{y, std::get<0>(state), std::get<1>(state)};
                    };
                  }),
                  {at::randn({5, 2, 4})});
  expect_faithful("embedding with max_norm, which writes its parameter", model_of([](Model& m) {
                    auto e = m.register_module("e", nn::Embedding(nn::EmbeddingOptions(11, 4).max_norm(0.5)));
                    m.body = [=](const Tensors& in) mutable { return Tensors{call(e, in[0])}; };
                  }),
                  {at::randint(4, {6})});
}

TEST(Capture, CallsReplayBitForBit) {
  using F = std::function<Tensors(const at::Tensor& x, const at::Tensor& w, const at::Tensor& count)>;
  struct Case {
    const char* name;
    F f;
  };
#define CASE(name, ...)                                                                                              \
  {                                                                                                                  \
    name, [](const auto& x, [[maybe_unused]] const auto& w, [[maybe_unused]] const auto& count)->Tensors __VA_ARGS__ \
  }
  // clang-format off
  const Case cases[] = {
      CASE("in place", { auto y = x * w; y.add_(1).mul_(w.sigmoid()); y.t().sub_(x); return {y}; }),
      CASE("in place on views", { auto y = at::matmul(x, w); y.select(0, 1).mul_(2); y.slice(1, 0, 2).copy_(x.slice(1,
        2, 4)); y.index_put_({at::tensor({0, 2})}, x[0]); return {y, y.sum()}; }),
      CASE("a view makes its base require a gradient", { auto y = torch::zeros({4, 4}); y[0].copy_(w[1]); return {y *
        x, y}; }),
      CASE("foreach in place", { Tensors ys{x * 1, torch::zeros({4, 4})}; at::_foreach_add_(ys, Tensors{w, w}); return
        {ys[0], ys[1]}; }),
      CASE("out=", { const at::NoGradGuard g; auto y = torch::empty({4, 4}); at::add_out(y, x, w); return {y}; }),
      CASE("lists", { auto a = x.chunk(2, 1); auto b = w.unbind(0); auto c = x.split(3); return {at::cat({a[1], a[0]},
        1), at::stack({b[3], b[0]}), c[1], c[0]}; }),
      CASE("index", { auto i = torch::arange(3); return {x.index({at::indexing::None, at::indexing::Slice(), i}),
        w.index({i}), at::index(x, {std::nullopt, i})}; }),
      CASE("where, einsum", { return {at::where(x > 0, x, w), at::einsum("ij,kj->ik", {x, w}), x.masked_fill(x < 0,
        0)}; }),
      CASE("factories", { return {x + torch::randn({4, 4}), x * torch::eye(4), x + torch::arange(4), x +
        torch::full({4}, 2.5), at::rand_like(x) * w, x + torch::zeros({4}), x + torch::ones({}), torch::randperm(5)};
        }),
      CASE("literals", { return {x * torch::tensor({1.0F, 2.0F, 3.0F, 4.0F}), w + torch::tensor(2.0F), x *
        at::tensor({1.0F, 2.0F, 3.0F, 4.0F})}; }),
      CASE("memory filled in place", { auto y = torch::empty({4, 4}); y.index_copy_(0, torch::arange(4), x); auto n =
        torch::empty({4}); n.normal_(); auto b = torch::empty({4, 4}); b.addmm_(x, w, 0, 1); auto u =
        torch::empty({4, 4}); u.t_(); u.copy_(x); return {y * w + n, b, u.relu_()}; }),
      CASE("no grad", { at::Tensor s; { const at::NoGradGuard g; s = (x * w).abs().amax(); } return {x * w / s, s}; }),
      CASE("view made without gradients", { at::Tensor v; { const at::NoGradGuard g; v = (x * w).t(); } return {x + v};
        }),
      CASE("detach", { return {x.detach() * w, w.detach() * x, (x * w).detach()}; }),
      CASE("detach_", { auto y = x * w; auto z = y * 2; y.detach_(); return {z + y * w, y}; }),
      CASE("buffer", { count.add_(x.detach().sum(0)); return {x + count, count}; }),
      CASE("no-op results", { auto y = w.contiguous().to(at::kFloat); return {y * x, w, at::dropout(x, 0.5, false)};
        }),
      CASE("parameter written without gradients", { { const at::NoGradGuard g; w.mul_(0.5); } return {x * w}; }),
      CASE("parameter written twice", { { const at::NoGradGuard g; w.mul_(0.5); w.add_(1); } return {x * w}; }),
      CASE("None and repeated outputs", { auto y = x * w; return {y, at::Tensor(), y, x, w}; }),
      CASE("bf16", { return {(x.to(at::kBFloat16) * w.to(at::kBFloat16)).to(at::kFloat)}; }),
      CASE("gradient inside", { auto y = (x * w).pow(3).sum(); auto g = torch::autograd::grad({y}, {x}, {}, true,
        true); return {g[0]}; }),
      CASE("tie unregistered constant", { static const at::Tensor mask = at::ones({4, 4}).triu(); return {x * mask *
        w}; }),
      CASE("as strided, expand", { return {w.as_strided({2, 2}, {4, 2}), x.select(0, 1).expand({3, 4}), x.unfold(0, 2,
        1)}; }),
  };
  // clang-format on
#undef CASE
  for (const Case& c : cases) {
    at::manual_seed(11);
    try {
      const graph::Graph graph = expect_faithful(c.name, model_with(c.f), {at::randn({4, 4})});
      EXPECT_EQ(graph::to_text(graph::parse_graph(graph::to_text(graph))), graph::to_text(graph)) << c.name;
    } catch (const std::exception& error) {
      ADD_FAILURE() << c.name << ": " << error.what();
    }
  }
}

/// Whether an output depends on memory that a replay makes and does not write, in a graph that writes none.
bool returns_what_nobody_wrote(const graph::Graph& graph) {
  std::set<graph::ValueId> unwritten;
  for (const graph::Node& node : graph.nodes) {
    bool from_there = node.op->schema().name().starts_with("aten::empty");
    graph::for_each_use(node, [&](graph::ValueId value) { from_there = from_there || unwritten.contains(value); });
    if (from_there) graph::for_each_definition(node, [&](graph::ValueId value) { unwritten.insert(value); });
  }
  return std::ranges::any_of(graph.outputs, [&](graph::ValueId value) { return unwritten.contains(value); });
}

TEST(Capture, LiteralsKeepTheirValuesInCopiesAndViews) {
  using F = std::function<Tensors(const at::Tensor& x)>;
  const auto literal = [] { return at::tensor({1.0F, 2.0F, 3.0F, 4.0F}); };
  const std::pair<const char*, F> cases[] = {
      {"to", [](const at::Tensor& x) { return Tensors{x * at::tensor({0.5, 1.5, 2.5, 3.5}).to(x.scalar_type())}; }},
      {"torch::tensor of doubles",
       [](const at::Tensor& x) { return Tensors{x * torch::tensor(std::vector<double>{0.5, 1.5, 2.5, 3.5})}; }},
      {"reshape", [=](const at::Tensor& x) { return Tensors{x * literal().view({2, 2}).t().reshape({4})}; }},
      {"contiguous",
       [=](const at::Tensor& x) { return Tensors{x.view({4, 2, 2}) * literal().view({2, 2}).t().contiguous()}; }},
      {"a view made before the literal is read",
       [=](const at::Tensor& x) {
         const at::Tensor t = literal(), v = t.view({4, 1});
         const at::Tensor y = x * t;
         return Tensors{y * v, v};
       }},
      {"a view that is read first",
       [=](const at::Tensor& x) {
         const at::Tensor t = literal(), v = t.view({4, 1});
         const at::Tensor y = x * v;
         return Tensors{y * t, t};
       }},
      {"a view in place",
       [=](const at::Tensor& x) {
         const at::Tensor t = literal();
         t.unsqueeze_(1);
         return Tensors{x * t};
       }},
  };
  for (const auto& [name, f] : cases) {
    const F forward = f;
    const graph::Graph graph = expect_faithful(
        name, model_of([&](Model& m) { m.body = [forward](const Tensors& in) { return forward(in[0]); }; }),
        {at::randn({4, 4})});
    EXPECT_FALSE(returns_what_nobody_wrote(graph)) << name;
  }
}

struct DoubledByFunction : torch::autograd::Function<DoubledByFunction> {
  static at::Tensor forward(torch::autograd::AutogradContext*, const at::Tensor& x) {
    const at::Tensor y = torch::empty_like(x);
    y.t().copy_(x.t());  // the last write goes through a view
    return y;
  }
  static Tensors backward(torch::autograd::AutogradContext*, const Tensors& g) { return {g[0] * 2}; }
};

struct OwnGrad : torch::autograd::Function<OwnGrad> {
  static at::Tensor forward(torch::autograd::AutogradContext*, const at::Tensor& x) {
    const at::AutoGradMode grad(true);
    return x * 3;
  }
  static Tensors backward(torch::autograd::AutogradContext*, const Tensors& g) { return {g[0] * 2}; }
};

TEST(Capture, RefusalsNameOperatorAndModule) {
  using F = std::function<Tensors(const at::Tensor& x, const at::Tensor& w, const at::Tensor& count)>;
  struct Case {
    const char* op;
    const char* reason;
    F f;
  };
  static at::Tensor loose = at::ones({4, 4}), trained = at::ones({4, 4}).requires_grad_(true);
#define CASE(op, reason, ...)                                                                                      \
  {                                                                                                                \
    op, reason,                                                                                                    \
        [](const auto& x, [[maybe_unused]] const auto& w, [[maybe_unused]] const auto& count)->Tensors __VA_ARGS__ \
  }
  // clang-format off
  const Case cases[] = {
      CASE("aten::item", "read from a tensor", { return {x * x.sum().item()}; }),
      CASE("aten::equal", "read from a tensor", { return {at::equal(x, w) ? x : w}; }),
      CASE("aten::is_nonzero", "read from a tensor", { return {x.sum().is_nonzero() ? x : w}; }),
      CASE("aten::mul.Tensor", "custom autograd Function", { return {DoubledByFunction::apply(x * w) * x}; }),
      CASE("aten::mul.Tensor", "custom autograd Function", { return {OwnGrad::apply(x * w) * x}; }),
      CASE("aten::mul.Tensor", "requires_grad_() in forward", { auto y = x.detach(); y.requires_grad_(true); return {y
        * w}; }),
      CASE("aten::mul.Tensor", "'body.w'", { w.requires_grad_(false); try { auto y = x * w; w.requires_grad_(true);
        return {y}; } catch (...) { w.requires_grad_(true); throw; } }),
      CASE("aten::mul.Tensor", "shares its memory with 'body.w'", { return {x * w.data()}; }),
      CASE("aten::mul.Tensor", "shares its memory with", { return {x * (x * w).variable_data()}; }),
      CASE("aten::mul.Tensor", "shares its memory with", { auto z = torch::zeros({4, 4}); z[0].copy_(x[0]); auto y = z
        + 1; return {x * y.data()}; }),
      CASE("aten::mul_.Tensor", "shares its memory with 'body.w'", { w.data().mul_(w); return {x}; }),
      CASE("aten::_has_compatible_shallow_copy_type", "read from a tensor", { auto y = x * w; y.set_data(at::ones({4,
        4})); return {y + x}; }),
      CASE("aten::add_.Scalar", "changes input 'x0' in place", { const at::NoGradGuard g; x.add_(1); return {x * w};
        }),
      CASE("aten::add_.Scalar", "changes input 'x0' in place", { const at::NoGradGuard g; x.t().select(0, 1).add_(1);
        return {x * w}; }),
      CASE("aten::randn.generator", "explicit random generator", { auto g = at::make_generator<at::CPUGeneratorImpl>();
        return {x + at::randn({4, 4}, g)}; }),
      CASE("aten::mul.Tensor", "neither an input nor a registered parameter", { return {x * trained}; }),
      CASE("aten::add_.Tensor", "made outside the dispatcher", { auto s = torch::tensor({0.0F});
        s.add_(x.detach().sum()); return {s}; }),
      CASE("aten::add_.Tensor", "made outside the dispatcher", { auto s = at::tensor({0.0F}); s.add_(x.detach().sum());
        return {s}; }),
      CASE("aten::index_put_", "made outside the dispatcher", { auto s = at::tensor({4.0F}); s.index_put_({at::zeros({1},
        at::kLong)}, at::ones({1}), true); return {x * s}; }),
      CASE("aten::sqrt_", "made outside the dispatcher", { auto s = at::tensor({4.0F}); s.sqrt_(); return {x * s}; }),
      CASE("aten::neg_", "made outside the dispatcher", { auto s = at::tensor({4.0F}); s.unsqueeze_(0); s.neg_(); return
        {x * s}; }),
      CASE("aten::addmv_", "made outside the dispatcher", { const at::NoGradGuard g; auto s = at::tensor({1.0F, 2.0F,
        3.0F, 4.0F}); s.addmv_(x, w[0]); return {x * s}; }),
      CASE("aten::add_.Tensor", "made outside the dispatcher", { loose.add_(x.detach()); return {loose * w}; }),
  };
  // clang-format on
#undef CASE
  for (const Case& c : cases) {
    SCOPED_TRACE(std::string(c.op) + ": " + c.reason);
    bool refused_now = true;
    const ModelPtr model = model_with([&](const auto& x, const auto& w, const auto& count) {
      count.add_(1);
      const at::Tensor y = x + at::randn({4, 4});
      return refused_now ? c.f(x, w, count) : Tensors{y * w};
    });
    const at::Tensor generator = generator_state();
    try {
      capture_of(model, {at::randn({4, 4}).requires_grad_(true)});
      ADD_FAILURE() << "captured";
    } catch (const CaptureError& error) {
      const std::string what = error.what();
      for (const std::string& part :
           {std::string("at ") + c.op + " (node", std::string(c.reason), std::string("in module 'body' (Model)")})
        EXPECT_NE(what.find(part), std::string::npos) << part << "\n  in: " << what;
    } catch (const std::exception& error) {
      ADD_FAILURE() << error.what();
    }
    EXPECT_TRUE(at::equal(model->buffers()[0], at::zeros({4})));
    EXPECT_TRUE(at::equal(loose, at::ones({4, 4})));
    refused_now = false;
    expect_faithful("again", model, {at::randn({4, 4})});
  }
}

TEST(Capture, RefusedInputs) {
  const ModelPtr model = model_with([](const auto& x, const auto& w, const auto&) { return Tensors{x * w}; });
  const at::Tensor x = at::randn({4, 4});
  for (const Tensors& inputs :
       {Tensors{x, x}, Tensors{model->parameters()[0]}, Tensors{model->buffers()[0]}, Tensors{at::Tensor()}})
    EXPECT_THROW(capture_of(model, inputs), CaptureError);
  EXPECT_EQ(capture_of(model, {x, x.clone()}).inputs.size(), 2u);
}

TEST(Capture, BuffersThatAreNotDenseAreRefused) {
  for (const at::Tensor& sparse : {at::eye(3).to_sparse(), at::eye(3).to_sparse_csr()}) {
    const ModelPtr model = model_of([&](Model& m) {
      m.register_buffer("mask", sparse);
      m.body = [](const Tensors& in) { return Tensors{in[0].relu()}; };
    });
    try {
      capture_of(model, {at::randn({3})});
      ADD_FAILURE() << "captured";
    } catch (const CaptureError& error) {
      EXPECT_NE(std::string(error.what()).find("buffer 'mask' is not dense"), std::string::npos) << error.what();
    }
  }
}

TEST(Capture, TensorsWhoseSizesForwardChangesAreRestored) {
  const ModelPtr model = model_with([](const auto& x, const auto& w, const auto& count) {
    const at::NoGradGuard no_grad;
    count.resize_({2, 4});
    w.unsqueeze_(0);
    return Tensors{x + 1};
  });
  const at::Tensor w = model->parameters()[0].detach().clone();
  capture_of(model, {at::randn({4, 4})});
  expect_equal(model->buffers(), {at::zeros({4})}, "buffer");
  expect_equal(model->parameters(), {w}, "parameter");
}

TEST(Capture, ModuleCallsAreNamed) {
  auto inner = std::make_shared<Model>(), outer = std::make_shared<Model>(), stranger = std::make_shared<Model>();
  inner->body = [](const Tensors& in) { return Tensors{in[0].relu()}; };
  outer->body = [=](const Tensors& in) mutable { return Tensors{call(inner, in[0]) + 1}; };
  stranger->body = inner->body;
  outer->register_module("inner", inner);
  const ModelPtr root = model_of([&](Model& m) {
    m.register_module("outer", outer);
    m.register_module("zzz", outer);  // a second name of the same module
    auto norm = m.register_module("norm", torch::nn::LayerNorm(torch::nn::LayerNormOptions({4})));
    m.body = [=](const Tensors& in) mutable {
      const at::Tensor x = call(outer, in[0]);
      pipe_split();
      return Tensors{call(norm, x)};
    };
  });
  const graph::Graph graph = capture_of(root, {at::randn({4})});
  EXPECT_TRUE(
      graph::to_text(graph).ends_with("module \"outer\" \"Model\" 0 2\nmodule \"outer.inner\" \"Model\" 0 1\n"
                                      "module \"norm\" \"torch::nn::LayerNormImpl\" 3 4\n"))
      << graph::to_text(graph);
  EXPECT_TRUE(graph.nodes[2].is_split());
  EXPECT_EQ(graph.nodes.size(), 4u);
  root->body = [=](const Tensors& in) mutable { return Tensors{call(stranger, in[0])}; };
  EXPECT_TRUE(at::equal(root->forward(at::ones({4})), at::ones({4})));  // outside a capture call() only calls
  pipe_split();                                                         // and pipe_split() does nothing
  EXPECT_THROW(capture_of(root, {at::randn({4})}), CaptureError);
  EXPECT_EQ(capture_of(outer, {at::randn({4})}).module_calls.at(0).name, "inner");
}

TEST(Capture, TwoThreadsAtATime) {
  at::manual_seed(5);
  const at::Tensor generator = generator_state();
  std::vector<std::string> texts(2);
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t)
    threads.emplace_back([&texts, t] {
      auto model = std::make_shared<Model>();
      model->body = [t](const Tensors& in) { return Tensors{t ? at::dropout(in[0], 0.5, true) : in[0].exp()}; };
      for (int i = 0; i < 50; ++i) {
        const std::string text = graph::to_text(capture_of(model, {at::ones({16})}));
        if (i > 0 && text != texts[t]) texts[t] = "changed";
        if (i == 0) texts[t] = text;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_NE(texts[0].find("aten::exp"), std::string::npos) << texts[0];
  EXPECT_NE(texts[1].find("aten::dropout"), std::string::npos) << texts[1];
  EXPECT_EQ(texts[0].find("dropout"), std::string::npos);
  EXPECT_TRUE(at::equal(generator, generator_state()));
}

}  // namespace
}  // namespace plumbline::capture
