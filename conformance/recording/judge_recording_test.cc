// Verdicts on two recordings: with a fault, with an incomplete recording, and with one of another run.
#include "conformance/recording/judge_recording.h"

#include <gtest/gtest.h>

#include <functional>

#include "conformance/recording/testing/sample_recording.h"
#include "runtime/io/temporary_folder.h"

namespace plumbline::conformance {
namespace {

namespace fs = std::filesystem;

constexpr reference::ResultKind kAll[] = {reference::ResultKind::Forward, reference::ResultKind::Loss,
                                          reference::ResultKind::Backward, reference::ResultKind::Grad,
                                          reference::ResultKind::Buffer};

class JudgeRecording : public ::testing::Test {
 protected:
  JudgeRecording() { sample::write(one_, sample::made(false)); }
  Finding judge(const sample::Made& run, int ranks = 2) {
    sample::write(run_, run);
    return judge_recording(one_, run_, ranks, {std::begin(kAll), std::end(kAll)});
  }
  const TemporaryFolder folder_;
  const fs::path one_ = folder_ / "one", run_ = folder_ / "run";
};

/// Erases every tensor whose key contains `part`.
void drop(sample::Made& run, const std::string& part) {
  for (sample::Rank& rank : run.ranks)
    std::erase_if(rank.tensors, [&](const auto& item) { return item.first.find(part) != std::string::npos; });
}

TEST_F(JudgeRecording, ACompleteEqualRecordingPasses) {
  EXPECT_FALSE(why_no_baseline(one_)) << *why_no_baseline(one_);
  const Finding finding = judge(sample::made(true));
  EXPECT_EQ(finding.status, Status::Pass) << finding.reason;
  EXPECT_EQ(finding.truth, reference::Truth::SameOrder);
  EXPECT_EQ(finding.checked, (std::vector<std::string>{"forward", "loss", "backward", "grad", "buffer"}));
  EXPECT_EQ(finding.tensors, 75);  // 4 modules x 3 micro-batches x 5 values, 3 losses, 4 x 3 of parameters and buffers
  EXPECT_EQ(finding.elements, 147);
  EXPECT_EQ(finding.reason, "");
}

TEST_F(JudgeRecording, AFaultIsNamedWithWhereToLook) {
  sample::Made run = sample::made(true);
  sample::element(run.at("0/backward/0/1/layers.0:out"), 0) += 1;
  sample::element(run.at("0/grad/0/-/embed.weight"), 0) += 1;
  const Finding finding = judge(run);
  EXPECT_EQ(finding.status, Status::Fail);
  EXPECT_EQ(to_string(finding.first.value().key), "0/backward/0/1/layers.0:out");
  EXPECT_EQ(finding.all.size(), 1u);
  EXPECT_EQ(finding.differing, 2);
  EXPECT_NE(finding.reason.find("on the way from stage 1 to stage 0"), std::string::npos) << finding.reason;
}

TEST_F(JudgeRecording, SumsInAnotherOrderAreNotedAndPass) {
  sample::Made run = sample::made(true), one = sample::made(false);
  // 2^24 + 1 + 1: 2^24 from left to right, 2^24 + 2 if the small ones are added first
  const float parts[] = {16777216, 1, 1};
  for (auto* side : {&run, &one})
    for (int m = 0; m < 3; ++m)
      side->at("0/backward/" + std::string(side == &run ? "1" : "-") + "/" + std::to_string(m) + "/head.weight") =
          sample::f32({parts[m], parts[m]});
  one.at("0/grad/-/-/head.weight") = sample::f32({16777216, 16777216});
  run.at("0/grad/1/-/head.weight") = sample::f32({16777218, 16777218});
  sample::write(one_, one);
  const Finding finding = judge(run);
  EXPECT_EQ(finding.status, Status::Pass) << sentence(finding);
  EXPECT_EQ(finding.truth, reference::Truth::Bounded);
  EXPECT_EQ(finding.reason, "1 gradient equal up to the order of a sum");
}

TEST_F(JudgeRecording, AnIncompleteRecordingDoesNotPass) {
  struct Lack {
    std::function<void(sample::Made&)> take;
    Status status;
    std::string reason;
  };
  for (const Lack& lack : {
           Lack{[](auto& run) { drop(run, "/loss/"); }, Status::Fail,
                "the backend declares loss, but both runs recorded no such value in common"},
           Lack{[](auto& run) { drop(run, "/buffer/"); }, Status::Fail,
                "the backend declares buffer, but both runs recorded no such value in common"},
           Lack{[](auto& run) {
                  drop(run, "head");
                  auto& rank = run.ranks.back();
                  rank.parameters.pop_back();
                  std::erase_if(rank.order, [](const std::string& name) { return name.starts_with("head"); });
                },
                Status::Fail, "not recorded: 1 parameter of the run on one rank, `head.weight` first"},
           Lack{[](auto& run) { run = sample::made(false); }, Status::Error, "recorded on 1 rank, the job was for 2"},
           Lack{[](auto& run) { run.ranks.pop_back(); }, Status::Error, "recorded on 1 rank, the job was for 2"},
           Lack{[](auto& run) { run.index["files"] = nlohmann::json::array(); }, Status::Error,
                "no step was recorded by every rank"},
           Lack{[](auto& run) { run.index["microbatches"] = 4; }, Status::Error, "4 micro-batches"},
           Lack{[](auto& run) {
                  for (sample::Rank& rank : run.ranks)
                    rank.tensors.clear(), rank.order.clear(), rank.parameters.clear();
                },
                Status::Error, "it has no value in common with its run on one rank"},
       }) {
    fs::remove_all(run_);
    sample::Made run = sample::made(true);
    lack.take(run);
    const Finding finding = judge(run);
    EXPECT_EQ(finding.status, lack.status) << lack.reason << "\n" << sentence(finding);
    EXPECT_NE(finding.reason.find(lack.reason), std::string::npos) << lack.reason << "\n" << finding.reason;
  }
}

TEST_F(JudgeRecording, AMissingRankOrStepIsAnError) {
  sample::write(run_, sample::made(true));
  fs::remove(run_ / "rank1.json");
  Finding finding = judge_recording(one_, run_, 2, {});
  EXPECT_EQ(finding.status, Status::Error);
  EXPECT_NE(finding.reason.find("rank1.json is missing, the run had 2 ranks"), std::string::npos) << finding.reason;

  sample::Made longer = sample::made(false);
  longer.index["files"] = {"rank0.step0.safetensors", "rank0.step1.safetensors"};
  sample::write(one_, longer);
  write_tensor_file(one_ / "rank0.step1.safetensors", {});
  finding = judge(sample::made(true));
  EXPECT_EQ(finding.status, Status::Error);
  EXPECT_NE(finding.reason.find("1 step; on one rank it recorded 2"), std::string::npos) << finding.reason;
}

TEST_F(JudgeRecording, AnUnreadableRecordingIsNoBaseline) {
  EXPECT_NE(why_no_baseline(folder_ / "nowhere").value_or("").find("no such folder"), std::string::npos);
  EXPECT_NE(why_no_baseline(sample::write(run_, sample::made(true))).value_or("").find("recorded on 2 ranks"),
            std::string::npos);
  fs::resize_file(one_ / "rank0.step0.safetensors", 100);
  EXPECT_NE(why_no_baseline(one_).value_or("").find("rank0.step0.safetensors"), std::string::npos);
}

}  // namespace
}  // namespace plumbline::conformance
