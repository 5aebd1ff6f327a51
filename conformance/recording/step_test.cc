// Sums over copies in each dtype, by bits that were written down by hand, and pieces that belong together.
#include "conformance/recording/step.h"

#include <gtest/gtest.h>

#include <cstring>

#include "conformance/recording/testing/sample_recording.h"

namespace plumbline::conformance {
namespace {

using reference::ResultKind;

HostTensor of_bits(const std::string& dtype, uint64_t bits) {
  HostTensor tensor{dtype, {}, std::vector<std::byte>(element_size(dtype))};
  std::memcpy(tensor.data.data(), &bits, tensor.data.size());  // little-endian
  return tensor;
}

RecordedStep copies_of(const std::vector<HostTensor>& tensors) {
  RecordedStep step;
  for (int stage = 0; const HostTensor& tensor : tensors)
    step[{ResultKind::Backward, 0, "embed.weight"}].push_back({stage, stage++, tensor});
  return step;
}

TEST(Step, SumsAreRoundedToTheDtypeOnce) {
  struct Sum {
    std::string dtype;
    uint64_t a, b, sum;
  };
  const std::vector<Sum> sums = {
      {"F64", 0x3ff0000000000000, 0x3ff0000000000000, 0x4000000000000000},
      {"F32", 0x3f800000, 0x33800000, 0x3f800000},  // 1 + 2^-24: halfway, to the even number
      {"F32", 0x3f800001, 0x33800000, 0x3f800002},
      {"BF16", 0x3f80, 0x3b80, 0x3f80},  // 1 + 2^-8
      {"BF16", 0x3f81, 0x3b80, 0x3f82},
      {"BF16", 0xbf81, 0xbb80, 0xbf82},
      {"BF16", 0x7f7f, 0x7f7f, 0x7f80},  // to infinity
      {"BF16", 0x0001, 0x0001, 0x0002},  // subnormal
      {"BF16", 0x7f80, 0x7fc0, 0x7fc0},  // NaN
      {"F16", 0x3c00, 0x1000, 0x3c00},   // 1 + 2^-11
      {"F16", 0x3c01, 0x1000, 0x3c02},
      {"F16", 0x3c00, 0xbc00, 0x0000},
      {"F16", 0x8000, 0x8000, 0x8000},
      {"F16", 0x03ff, 0x0001, 0x0400},  // subnormal, to the least normal number
      {"F16", 0x07ff, 0x0001, 0x0800},
      {"F16", 0x7bff, 0x7bff, 0x7c00},
      {"F16", 0xfc00, 0x3c00, 0xfc00},
  };
  for (const auto& [dtype, a, b, sum] : sums) {
    const Step step = add_up_copies(copies_of({of_bits(dtype, a), of_bits(dtype, b)}), {});
    const RecordedCopy& copy = step.values.begin()->second.front();
    EXPECT_EQ(copy.tensor, of_bits(dtype, sum)) << dtype << " " << std::hex << a << " " << b;
    EXPECT_EQ(copy.stage, -1);
    EXPECT_EQ(step.summands.begin()->second.size(), 2u);
  }
}

TEST(Step, OnlyContributionsOfOneFormAreAddedUp) {
  const Step step = add_up_copies(copies_of({sample::f32({1}), sample::f32({1, 2})}), {});
  EXPECT_EQ(step.values.begin()->second.size(), 2u);
  RecordedStep others;
  for (const ResultKind kind : {ResultKind::Forward, ResultKind::Grad})
    for (const int stage : {0, 1}) others[{kind, 0, "embed.weight"}].push_back({stage, stage, sample::f32({1})});
  for (const int stage : {0, 1})
    others[{ResultKind::Backward, 0, "embed:out"}].push_back({stage, stage, sample::f32({1})});
  for (const auto& [key, copies] : add_up_copies(others, {}).values) EXPECT_EQ(copies.size(), 2u) << key.name;
}

TEST(Step, PiecesAreJoinedWhereTheRunHasThemWhole) {
  const HostTensor whole = sample::f32({1, 2, 3});
  RecordedStep one, run;
  const auto put = [](RecordedStep& step, ResultKind kind, int microbatch, const std::string& name,
                      const HostTensor& tensor) { step[{kind, microbatch, name}].push_back({0, -1, tensor}); };
  for (int mb = 0; mb < 2; ++mb)
    for (const ResultKind kind : {ResultKind::Forward, ResultKind::Backward}) {
      put(one, kind, mb, "positions:out", mb == 0 ? sample::f32({1, 2}) : sample::f32({3}));  // as tensor_split() cuts
      put(run, kind, mb, "positions:out", whole);
      put(one, kind, mb, "short:out", sample::f32({1}));
      put(run, kind, mb, "short:out", whole);
    }
  RecordedStep all_whole = one;
  join_uncut(all_whole, run);
  EXPECT_EQ(all_whole.size(), one.size()) << "a script that cuts nothing is at fault";
  put(one, ResultKind::Forward, 0, "fc:out", sample::f32({5}));
  put(run, ResultKind::Forward, 0, "fc:out", sample::f32({6}));
  join_uncut(one, run);
  for (int mb = 0; mb < 2; ++mb) {
    EXPECT_EQ(one.at({ResultKind::Forward, mb, "positions:out"}).front().tensor, whole);
    EXPECT_FALSE(one.contains({ResultKind::Backward, mb, "positions:out"}));
    EXPECT_EQ(one.at({ResultKind::Backward, mb, "short:out"}).front().tensor, sample::f32({1}));
  }
  EXPECT_EQ(one.at({ResultKind::Forward, 0, "fc:out"}).front().tensor, sample::f32({5}));
}

}  // namespace
}  // namespace plumbline::conformance
