#include "runtime/split/io/transmit.h"

#include <gtest/gtest.h>

#include <cstring>
#include <nlohmann/json.hpp>

#include "runtime/error.h"
#include "runtime/graph/io/text.h"
#include "runtime/graph/run/program.h"
#include "runtime/split/io/pipe_json.h"
#include "runtime/testing/refusal.h"
#include "runtime/testing/small_pipes.h"

namespace plumbline::split {
namespace {

std::string refusal(const std::string& bytes, const std::string& run_id = "run-1") {
  return testing::refusal([&] { unpack_stages(bytes, run_id); });
}

/// A pipe of one stage that holds these tensors as constants.
Pipe pipe_of(const std::vector<at::Tensor>& tensors) {
  Pipe pipe;
  graph::Graph& graph = pipe.stages.emplace_back().graph;
  for (const at::Tensor& tensor : tensors)
    graph.attributes.push_back({graph::AttributeKind::Constant,
                                "t" + std::to_string(graph.attributes.size()),
                                {},
                                true,
                                tensor,
                                graph::kNoValue});
  return pipe;
}

std::vector<at::Tensor> sent(const std::vector<at::Tensor>& tensors) {
  const Pipe pipe = unpack_stages(pack_stages(pipe_of(tensors), {0}, "r"), "r");
  std::vector<at::Tensor> arrived;
  for (const graph::Attribute& attribute : pipe.stages[0].graph.attributes) arrived.push_back(attribute.tensor);
  return arrived;
}

/// Compares memory, so that NaN and every type are compared by their bits. Both must be contiguous.
bool same_bits(const at::Tensor& a, const at::Tensor& b) {
  return a.scalar_type() == b.scalar_type() && a.sizes() == b.sizes() &&
         (a.nbytes() == 0 || std::memcmp(a.const_data_ptr(), b.const_data_ptr(), a.nbytes()) == 0);
}

TEST(Transmit, StagesArriveWithTheirTensorsAndRunBitForBit) {
  at::manual_seed(3);
  const Pipe pipe = testing::three_stage_pipe();
  const Pipe head = unpack_stages(pack_stages(pipe, {0}, "run-1"), "run-1");
  const Pipe rest = unpack_stages(pack_stages(pipe, {1, 2}, "run-1"), "run-1");
  for (const Pipe* part : {&head, &rest}) {
    ASSERT_EQ(part->num_stages(), 3);
    const auto no_graphs = [](int) { return false; };
    EXPECT_EQ(to_json(*part, no_graphs), to_json(pipe, no_graphs)) << "the structure is whole on every rank";
  }
  EXPECT_TRUE(head.stages[1].graph.nodes.empty());
  EXPECT_TRUE(head.stages[2].graph.attributes.empty());
  EXPECT_TRUE(rest.stages[0].graph.nodes.empty());
  std::vector<at::Tensor> expected, actual;
  const std::vector<at::Tensor> inputs = {at::randn({2, 3}), at::randn({2, 3})};
  const auto both = [&](const Pipe& part, int s, const std::vector<at::Tensor>& values) {
    EXPECT_EQ(to_text(part.stages[s].graph), to_text(pipe.stages[s].graph));
    graph::Program(pipe.stages[s].graph).run(values, expected);
    graph::Program(part.stages[s].graph).run(values, actual);
    ASSERT_EQ(actual.size(), expected.size());
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_TRUE(same_bits(actual[i].contiguous(), expected[i].contiguous())) << s;
      EXPECT_EQ(actual[i].requires_grad(), expected[i].requires_grad()) << s;
    }
  };
  both(head, 0, inputs);
  const at::Tensor skip = expected[0];
  both(rest, 1, {expected[0], expected[1]});
  both(rest, 2, {skip, expected[0]});
  const graph::Attribute& weight = head.stages[0].graph.attributes[0];
  EXPECT_TRUE(weight.tensor.is_leaf() && weight.tensor.requires_grad());
  EXPECT_FALSE(weight.tensor.is_alias_of(pipe.stages[0].graph.attributes[0].tensor));
  EXPECT_EQ(weight.aliases, std::vector<std::string>{"tied.w"});
  EXPECT_FALSE(rest.stages[1].graph.attributes[0].persistent);
}

TEST(Transmit, EveryElementTypeArrivesBitForBit) {
  const at::ScalarType types[] = {at::kFloat,
                                  at::kDouble,
                                  at::kHalf,
                                  at::kBFloat16,
                                  at::kLong,
                                  at::kInt,
                                  at::kShort,
                                  at::kChar,
                                  at::kByte,
                                  at::kBool,
                                  at::ScalarType::UInt16,
                                  at::ScalarType::UInt32,
                                  at::ScalarType::UInt64,
                                  at::kComplexFloat,
                                  at::kComplexDouble,
                                  at::kFloat8_e4m3fn,
                                  at::kFloat8_e5m2};
  std::vector<at::Tensor> tensors;
  for (const at::ScalarType type : types)
    for (const std::vector<int64_t>& sizes : std::vector<std::vector<int64_t>>{{3, 2}, {}, {0, 4}, {2, 0}}) {
      at::Tensor tensor = at::empty(sizes, type);
      // Any bits, including those of NaN; a bool has only two values.
      auto* bytes = static_cast<unsigned char*>(tensor.mutable_data_ptr());
      for (size_t i = 0; i < tensor.nbytes(); ++i)
        bytes[i] = static_cast<unsigned char>(type == at::kBool ? i % 2 : 0xf1 + 37 * i);
      tensors.push_back(tensor);
    }
  tensors.emplace_back();
  const std::vector<at::Tensor> arrived = sent(tensors);
  ASSERT_EQ(arrived.size(), tensors.size());
  for (size_t i = 0; i + 1 < tensors.size(); ++i)
    EXPECT_TRUE(same_bits(arrived[i], tensors[i]))
        << graph::describe(tensors[i]) << " became " << graph::describe(arrived[i]);
  EXPECT_FALSE(arrived.back().defined());
}

TEST(Transmit, WhatIsSharedStaysShared) {
  const at::Tensor a = at::randn({4, 6}).requires_grad_(true), b = at::arange(12, at::kFloat);
  const std::vector<at::Tensor> arrived = sent({a, b.view({3, 4}).t(), a, b.slice(0, 2, 5), at::randn({6})});
  EXPECT_TRUE(arrived[0].is_same(arrived[2]));
  EXPECT_TRUE(same_bits(arrived[0], a));
  EXPECT_TRUE(arrived[1].is_alias_of(arrived[3]));
  EXPECT_EQ(arrived[1].strides(), b.view({3, 4}).t().strides());
  EXPECT_TRUE(at::equal(arrived[1], b.view({3, 4}).t()));
  EXPECT_TRUE(at::equal(arrived[3], b.slice(0, 2, 5)));
  arrived[1].zero_();
  EXPECT_EQ(arrived[3].abs().sum().item<float>(), 0.0f);
  EXPECT_FALSE(arrived[4].is_alias_of(arrived[0]));
  EXPECT_FALSE(arrived[4].requires_grad());
}

TEST(Transmit, StridesOfDenseTensorsAreKeptAndGapsAreNotSent) {
  const at::Tensor image = at::randn({2, 3, 4, 5}).contiguous(at::MemoryFormat::ChannelsLast);
  const at::Tensor narrow = at::randn({1000, 1000}).slice(1, 3, 5), wide = at::ones({1}).expand({50});
  const std::vector<at::Tensor> arrived = sent({image, narrow, wide, at::randn({3, 2}).t().to(at::kComplexFloat)});
  EXPECT_EQ(arrived[0].strides(), image.strides());
  EXPECT_TRUE(at::equal(arrived[0], image));
  EXPECT_TRUE(arrived[1].is_contiguous());
  EXPECT_EQ(arrived[1].storage().nbytes(), 1000 * 2 * sizeof(float));
  EXPECT_TRUE(at::equal(arrived[1], narrow));
  EXPECT_TRUE(at::equal(arrived[2], wide));
}

TEST(Transmit, LazyConjugatesAndNegativesArriveAsWhatTheyAre) {
  const at::Tensor z = at::randn({3, 2}, at::kComplexDouble);
  const std::vector<at::Tensor> arrived = sent({z.clone().conj(), at::imag(z.clone().conj()).t()});
  EXPECT_TRUE(at::equal(arrived[0], z.conj().resolve_conj()));
  EXPECT_TRUE(at::equal(arrived[1], at::imag(z).neg().t()));
}

TEST(Transmit, MetaTensorsStayMeta) {
  const at::Tensor meta = at::empty({1 << 20, 1 << 20}, at::TensorOptions(c10::kMeta).dtype(at::kBFloat16));
  const std::vector<at::Tensor> arrived = sent({meta.t().set_requires_grad(true)});
  EXPECT_TRUE(arrived[0].is_meta() && arrived[0].requires_grad());
  EXPECT_EQ(arrived[0].strides(), meta.t().strides());
  EXPECT_EQ(arrived[0].scalar_type(), at::kBFloat16);
}

TEST(Transmit, RefusesAnotherRunAnotherVersionAndDamage) {
  const std::string bytes = pack_stages(testing::three_stage_pipe(), {0, 2}, "run-1");
  ASSERT_EQ(refusal(bytes), "accepted");
  EXPECT_EQ(refusal(bytes, "run-2"),
            "stages of a pipe: they carry run id run-1, this is run run-2; stages are sent, not kept: use `plumbline "
            "split -o` for files");
  std::string newer = bytes;
  newer.replace(newer.find("/1\n"), 3, "/2\n");
  EXPECT_EQ(refusal(newer),
            "stages of a pipe: format version 2, this program reads 1; run the same build on every rank");
  EXPECT_NE(refusal("{}").find("something else"), std::string::npos);
  EXPECT_NE(refusal(bytes + "x").find("1 bytes too many"), std::string::npos);
  EXPECT_NE(refusal(bytes.substr(0, 20)).find("truncated"), std::string::npos);
  EXPECT_NE(refusal(bytes.substr(0, bytes.size() - 1)).find("truncated"), std::string::npos);
  for (size_t i = 0; i < bytes.size(); i += i < 100 ? 1 : 31) {
    const std::string why = refusal(bytes.substr(0, i));
    EXPECT_NE(why, "accepted") << i;
    EXPECT_EQ(why.find('\n'), std::string::npos) << why;
    std::string damaged = bytes;
    damaged[i] = static_cast<char>(damaged[i] ^ (1 << i % 8));
    EXPECT_NE(refusal(damaged), "accepted") << "byte " << i;
  }
  const std::string damaged = [&] {
    std::string changed = bytes;
    changed.back() = static_cast<char>(changed.back() + 1);
    return refusal(changed);
  }();
  EXPECT_EQ(damaged, "stages of a pipe: damaged on the way: the checksum does not fit");
}

TEST(Transmit, WhatIsNotDenseIsRefusedByName) {
  testing::expect_part(testing::failure([] { sent({at::eye(3).to_sparse()}); }), "'constant/t0' is not a dense tensor");
}

}  // namespace
}  // namespace plumbline::split
