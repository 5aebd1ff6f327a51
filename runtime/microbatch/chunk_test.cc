#include "runtime/microbatch/chunk.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <limits>
#include <numeric>
#include <random>

#include "runtime/error.h"
#include "runtime/testing/refusal.h"

namespace plumbline::microbatch {
namespace {

using Tensors = std::vector<at::Tensor>;
using Names = std::vector<std::string>;
constexpr ChunkSpec kReplicate = {true, 0};
ChunkSpec along(int dim) { return {false, dim}; }

using testing::refusal;

/// Checks that `text` is one line that contains `part`.
void expect_part(const std::string& text, const std::string& part) { testing::expect_line(text, "", part); }

TEST(Chunk, DividesAsTensorSplitDoesWithoutCopies) {
  for (int n = 1; n <= 20; ++n)
    for (int m = 1; m <= n; ++m)
      for (int dim = 0; dim < 3; ++dim) {
        SCOPED_TRACE(std::to_string(n) + " rows, " + std::to_string(m) + " micro-batches, dim " + std::to_string(dim));
        std::vector<int64_t> sizes = {2, 3, 4};
        sizes[dim] = n;
        const at::Tensor x = at::arange(sizes[0] * sizes[1] * sizes[2]).view(sizes);
        const Tensors expected = at::tensor_split(x, m, dim);
        const auto chunks = split_inputs({"x"}, {x}, {along(dim)}, m);
        const at::Tensor other = x + 1;
        const std::vector<Targets> targets = split_targets({x, other}, m, {.dim = dim});
        const std::vector<int64_t> rows = chunk_rows(n, m);
        ASSERT_EQ(chunks.size(), expected.size());
        ASSERT_EQ(targets.size(), expected.size());
        ASSERT_EQ(rows.size(), expected.size());
        for (int k = 0; k < m; ++k) {
          EXPECT_TRUE(at::equal(chunks[k][0], expected[k]));
          ASSERT_EQ(targets[k].size(), 2u);
          EXPECT_TRUE(at::equal(targets[k][0], expected[k]));
          EXPECT_TRUE(at::equal(targets[k][1], expected[k] + 1));
          EXPECT_EQ(rows[k], expected[k].size(dim));
          EXPECT_EQ(chunks[k][0].data_ptr(), expected[k].data_ptr()) << "a copy";
          EXPECT_EQ(targets[k][0].data_ptr(), expected[k].data_ptr()) << "a copy";
        }
      }
}

TEST(Chunk, ReplicatedInputsGoWholeToAll) {
  const at::Tensor x = at::ones({4, 2}), scalar = at::ones({}), table = at::ones({1, 3});
  const auto chunks = split_inputs({"s", "x", "t"}, {scalar, x, table}, {kReplicate, along(0), {true, 9}}, 3);
  ASSERT_EQ(chunks.size(), 3u);
  for (const Tensors& chunk : chunks) {
    ASSERT_EQ(chunk.size(), 3u);
    EXPECT_TRUE(chunk[0].is_same(scalar));
    EXPECT_TRUE(chunk[2].is_same(table));
  }
  EXPECT_EQ(chunks[0][1].size(0), 2);
  const auto all = split_inputs({"s"}, {scalar}, {kReplicate}, 5);
  EXPECT_EQ(all.size(), 5u);
  EXPECT_EQ(split_inputs({}, {}, {}, 2).size(), 2u);
}

TEST(Chunk, NoneIsNoneInEachMicrobatch) {
  const auto chunks = split_inputs({"x", "mask", "scale"}, {at::ones({4, 2}), at::Tensor(), at::Tensor()},
                                   {along(0), along(7), kReplicate}, 2);
  ASSERT_EQ(chunks.size(), 2u);
  for (const Tensors& chunk : chunks) {
    EXPECT_EQ(chunk[0].size(0), 2);
    EXPECT_FALSE(chunk[1].defined());
    EXPECT_FALSE(chunk[2].defined());
  }
  expect_part(refusal([] { split_inputs({"x", "mask"}, {at::Tensor(), at::Tensor()}, {along(0), along(0)}, 2); }),
              "input 'x' is missing, and so are all others");
}

TEST(Chunk, GradientsFlowToTheWholeInput) {
  const at::Tensor x = at::ones({5}).requires_grad_(true);
  const auto chunks = split_inputs({"x"}, {x}, {along(0)}, 2);
  (chunks[0][0].sum() + 2 * chunks[1][0].sum()).backward();
  EXPECT_TRUE(at::equal(x.grad(), at::tensor({1.f, 1.f, 1.f, 2.f, 2.f})));
}

TEST(Chunk, RefusesWhatCannotBeDivided) {
  const at::Tensor a = at::ones({4, 2}), b = at::ones({5, 4});
  const auto of = [&](const Tensors& inputs, const std::vector<ChunkSpec>& specs, int m) {
    const Names names = {"a", "b"};
    return refusal([&] { split_inputs({names.begin(), names.begin() + inputs.size()}, inputs, specs, m); });
  };
  expect_part(of({a}, {along(0)}, 5), "input 'a' has 4 rows along dimension 0; 5 micro-batches need at least as many");
  expect_part(of({at::ones({0})}, {along(0)}, 1), "0 rows");
  expect_part(of({a, b}, {along(0), along(0)}, 2),
              "input 'b' has 5 rows, input 'a' has 4; they need the same number, or numbers that divide evenly");
  EXPECT_EQ(of({a, b}, {along(0), along(1)}, 2), "accepted") << "4 rows each, along other dimensions";
  EXPECT_EQ(of({a, b}, {along(0), kReplicate}, 2), "accepted");
  for (int dim : {-1, 2}) expect_part(of({a}, {along(dim)}, 1), "has 2 dimensions, so it cannot be divided along");
  expect_part(of({at::ones({})}, {along(0)}, 1), "input 'a' has 0 dimensions");
  expect_part(of({a, b}, {along(0)}, 1), "2 inputs, 2 names and 1 chunk specs");
  for (int m : {0, -1}) {
    expect_part(of({a}, {along(0)}, m), std::to_string(m) + " asked for; at least 1");
    expect_part(refusal([&] { split_targets(a, m); }), std::to_string(m) + " asked for; at least 1");
    expect_part(refusal([&] { split_targets({}, m); }), std::to_string(m) + " asked for; at least 1");
  }
  expect_part(refusal([&] { split_targets(a, 5); }), "the target has 4 rows");
  expect_part(refusal([&] { split_targets(at::ones({}), 1); }), "the target has 0 dimensions");
  expect_part(refusal([&] { split_targets({a, b}, 2); }),
              "target 1 has 5 rows, target 0 has 4; they need the same number, or numbers that divide evenly");
  for (const Targets& none : split_targets({}, 3)) EXPECT_FALSE(none.defined());
  EXPECT_EQ(split_targets({}, 3).size(), 3u);
}

TEST(Chunk, BindsInputsByPositionAndName) {
  const Names names = {"a", "b", "c"};
  const at::Tensor a = at::ones({1}), b = at::ones({2}), c = at::ones({3});
  const auto ordered = [&](const Tensors& bound) {
    return bound.size() == 3 && bound[0].is_same(a) && bound[1].is_same(b) && bound[2].is_same(c);
  };
  EXPECT_TRUE(ordered(bind_inputs(names, {a, b, c})));
  EXPECT_TRUE(ordered(bind_inputs(names, {a}, {{"c", c}, {"b", b}})));
  EXPECT_TRUE(ordered(bind_inputs(names, {}, {{"c", c}, {"b", b}, {"a", a}})));
  EXPECT_TRUE(bind_inputs({}, {}).empty());
  const Tensors none = bind_inputs(names, {a}, {{"c", c}, {"b", at::Tensor()}});
  EXPECT_TRUE(none.size() == 3 && none[0].is_same(a) && !none[1].defined() && none[2].is_same(c));
  const auto of = [&](const Tensors& positional, const std::map<std::string, at::Tensor>& keyword) {
    return refusal([&] { bind_inputs(names, positional, keyword); });
  };
  EXPECT_EQ(of({a, b}, {{"d", c}}), "inputs: the model has no input 'd'; it takes (a, b, c)");
  EXPECT_EQ(of({a, b, c}, {{"b", b}}),
            "inputs: 'b' is given twice, by position and by name; the model takes (a, b, c)");
  EXPECT_EQ(of({a}, {{"c", c}}), "inputs: 'b' is missing; the model takes (a, b, c)");
  EXPECT_EQ(of({a, at::Tensor()}, {{"c", c}}), "inputs: 'b' is missing; the model takes (a, b, c)");
  EXPECT_EQ(of({a, b, c, c}, {}), "inputs: 4 positional inputs given, the model takes 3: (a, b, c)");
}

TEST(Chunk, MergeIsTheInverseOfDividing) {
  for (unsigned seed = 0; seed < 30; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    at::manual_seed(seed);
    std::mt19937 random(seed);
    const int n = 1 + random() % 9, m = 1 + random() % n;
    const at::Tensor x = at::randn({n, 3}), y = at::randn({2, n}), same = at::randn({2});
    const std::vector<ChunkSpec> specs = {along(0), along(1), kReplicate};
    const Tensors merged = merge_outputs(split_inputs({"x", "y", "s"}, {x, y, same}, specs, m), specs);
    ASSERT_EQ(merged.size(), 3u);
    EXPECT_TRUE(at::equal(merged[0], x));
    EXPECT_TRUE(at::equal(merged[1], y));
    EXPECT_TRUE(at::equal(merged[2], same));
  }
  EXPECT_EQ(merge_outputs({{at::ones({2})}, {at::ones({1})}}, {})[0].size(0), 3) << "without a spec: dimension 0";
  const Tensors more =
      merge_outputs({{at::ones({2, 3}), at::ones({2, 3})}, {at::ones({2, 3}), at::ones({2, 3})}}, {along(1)});
  EXPECT_EQ(more[0].sizes(), (std::vector<int64_t>{2, 6}));
  EXPECT_EQ(more[1].sizes(), (std::vector<int64_t>{4, 3})) << "an output after the last spec: dimension 0";
  EXPECT_TRUE(merge_outputs({}, {}).empty());
}

TEST(Chunk, AReplicatedOutputMayHoldNaN) {
  const auto of = [](const at::Tensor& a, const at::Tensor& b) {
    return refusal([&] { merge_outputs({{a}, {b}}, {kReplicate}); });
  };
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const at::Tensor one = at::tensor({1.f, nan, -0.f});
  const std::string differs = "micro-batches: output 0 is marked as replicated, but micro-batch 1 differs from 0";
  EXPECT_EQ(of(one, one.clone()), "accepted");
  EXPECT_EQ(of(one, at::tensor({1.f, nan, 0.f})), "accepted") << "values count, not bits";
  EXPECT_EQ(of(one, at::tensor({nan, 1.f, 0.f})), differs);
  EXPECT_EQ(of(one, at::tensor({1.f, 2.f, 0.f})), differs);
  EXPECT_EQ(of(one, one.to(at::kDouble)), differs);
  EXPECT_EQ(of(at::zeros({0, 2}), at::zeros({0, 2})), "accepted");
}

TEST(Chunk, MergeRefusesWhatCannotBeJoined) {
  const auto of = [](const at::Tensor& a, const at::Tensor& b, ChunkSpec spec) {
    return refusal([&] { merge_outputs({{a, a}, {a, a}, {a, b}}, {kReplicate, spec}); });
  };
  const at::Tensor one = at::ones({2});
  EXPECT_EQ(of(one, one.clone(), kReplicate), "accepted");
  for (const at::Tensor& other : {at::zeros({2}), at::ones({1}), one + 1e-7})
    expect_part(of(one, other, kReplicate), "output 1 is marked as replicated, but micro-batch 2 differs from 0");
  expect_part(of(at::ones({}), at::ones({}), along(0)), "output 1 has 0 dimensions, so its chunks cannot be joined");
  for (int dim : {1, -1})
    expect_part(of(one, one, along(dim)), "cannot be joined along dimension " + std::to_string(dim));
  const Tensors none = merge_outputs({{at::Tensor(), one, at::Tensor()}, {at::Tensor(), one, at::Tensor()}},
                                     {along(0), along(0), kReplicate});
  ASSERT_EQ(none.size(), 3u);
  EXPECT_FALSE(none[0].defined() || none[2].defined());
  EXPECT_EQ(none[1].size(0), 4);
  for (const ChunkSpec& spec : {along(0), kReplicate}) {
    EXPECT_EQ(of(one, at::Tensor(), spec), "micro-batches: output 1 is None in micro-batch 2 and not in all of them");
    EXPECT_EQ(of(at::Tensor(), one, spec), "micro-batches: output 1 is None in micro-batch 0 and not in all of them");
  }
}

TEST(Chunk, MergeRefusesMicrobatchesOfDifferentNumbersOfOutputs) {
  const at::Tensor one = at::ones({2});
  const auto of = [&](const std::vector<Tensors>& outputs) { return refusal([&] { merge_outputs(outputs, {}); }); };
  EXPECT_EQ(
      of({{one}, {one}, {one, one}}),
      "micro-batches: micro-batch 2 has 2 outputs, micro-batch 0 has 1; merge those with the same number of outputs");
  EXPECT_EQ(
      of({{one, one}, {one}}),
      "micro-batches: micro-batch 1 has 1 outputs, micro-batch 0 has 2; merge those with the same number of outputs");
}

TEST(Chunk, WeightedChunkMeansAverageToTheMeanOfAll) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    const int n = 1 + random() % 40, m = 1 + random() % n;
    std::vector<double> rows(n);
    for (double& row : rows) row = std::uniform_real_distribution<double>(0.5, 1.5)(random);
    const std::vector<int64_t> sizes = chunk_rows(n, m);
    const std::vector<double> weights = mean_loss_weights({sizes.begin(), sizes.end()});
    ASSERT_EQ(weights.size(), static_cast<size_t>(m));
    double average = 0, weight_sum = 0;
    size_t next = 0;
    for (int k = 0; k < m; ++k) {
      const int size = n / m + (k < n % m);
      double sum = 0;
      for (int i = 0; i < size; ++i) sum += rows[next++];
      average += weights[k] * (sum / size) / m;
      weight_sum += weights[k];
      EXPECT_TRUE(n % m != 0 || weights[k] == 1.0);
    }
    const double mean = std::accumulate(rows.begin(), rows.end(), 0.0) / n;
    // All terms are positive, so the relative error of each side is at most one rounding for every operation on the
    // longest way to the result: n + m sums, and 5 products and quotients; the whole mean has n + 1. Half an ulp each.
    const double bound = (2 * n + m + 6) * 0x1p-53;
    EXPECT_NEAR(average, mean, bound * mean);
    EXPECT_NEAR(weight_sum, m, (m + 1) * 0x1p-53 * m);
  }
  EXPECT_EQ(mean_loss_weights({2, 1, 1, 1}), (std::vector<double>{1.6, 0.8, 0.8, 0.8}));
  EXPECT_EQ(mean_loss_weights({0.5, 3.5}), (std::vector<double>{0.25, 1.75}));
  EXPECT_EQ(mean_loss_weights({2, 0, 2}), (std::vector<double>{1.5, 0, 1.5})) << "one of three without a token";
  EXPECT_EQ(mean_loss_weights(std::vector<double>(49, 3)), std::vector<double>(49, 1.0));
}

TEST(CheckMicrobatches, RefusesWhatDoesNotFit) {
  const at::Tensor t = at::ones({2});
  const auto refused = [](const Microbatches& batch) {
    return refusal([&] { check_microbatches({"x", "y"}, batch, 2); });
  };
  EXPECT_NO_THROW(check_microbatches({"x", "y"}, {{{t, t}, {t, t}}, {t, t}}, 2));
  EXPECT_NO_THROW(check_microbatches({"x", "y"}, {{{t, {}}, {t, {}}}, {}}, 2));
  EXPECT_EQ(refused({{{t, t}}, {t, t}}), "micro-batches: there are inputs for 1, the schedule has 2");
  EXPECT_EQ(
      refused({{{t, t}, {t, t}}, {t}}),
      "micro-batches: there are targets for 1, the schedule has 2 micro-batches; give targets for each, or for none");
  EXPECT_EQ(refused({{{t, t}, {t}}, {t, t}}), "micro-batches: micro-batch 1 has 1 inputs; there are 2: x, y");
  EXPECT_EQ(refused({{{t, {}}, {t, t}}, {t, t}}),
            "micro-batches: input 'y' is None in micro-batch 0 and not in all of them");
  EXPECT_EQ(refused({{{t, t}, {t, t}}, {t, {}}}), "micro-batches: micro-batch 1 has 0 targets, micro-batch 0 has 1");
}

}  // namespace
}  // namespace plumbline::microbatch
