#include "conformance/proof/rows/step_cases.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "conformance/proof/rows/lemmas.h"
#include "conformance/proof/verify.h"
#include "runtime/error.h"
#include "runtime/io/temporary_folder.h"

namespace plumbline::proof {
namespace {

TEST(StepCases, AnswersWeightsAndReasonsArePrintedAndCertified) {
  const TemporaryFolder folder;
  std::ostringstream out;
  EXPECT_EQ(prove_steps({"uneven-mean,resnet-bn,exact-eval-only", 0, 1, folder / "p.json"}, out), 1);
  const std::string text = out.str();
  EXPECT_NE(text.find("PROVEN uneven-mean: the step of 4 micro-batches is the step of the whole batch; gradients of 16 "
                      "parameters\n  weights of loss: needed 3/10 x 2, 1/5 x 2; used 3/10 x 2, 1/5 x 2\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("NO resnet-bn: aten::native_batch_norm of blocks.0.bn1: mixes rows"), std::string::npos) << text;
  EXPECT_NE(text.find("\nproven 1\nno 1\nnot taken 1: it has no train step\n"), std::string::npos) << text;
  std::ifstream in(folder / "p.json");
  const nlohmann::json certificate = nlohmann::json::parse(in);
  ASSERT_EQ(certificate["cases"].size(), 3U);
  for (const nlohmann::json& one : certificate["cases"]) {
    if (one["case"] == "uneven-mean") {
      EXPECT_EQ(one["answer"], "same");
      EXPECT_EQ(one["weights"][2]["needed"], "1/5");
      EXPECT_EQ(one["gradients"].size(), 16U);
    } else if (one["case"] == "resnet-bn") {
      EXPECT_EQ(one["answer"], "differs");
      EXPECT_EQ(one["module"], "blocks.0.bn1");
    } else {
      EXPECT_EQ(one["answer"], "not-taken");
    }
  }
  std::ostringstream verified;
  EXPECT_EQ(verify_certificate(folder / "p.json", verified), 1) << "resnet-bn is not proven";
  EXPECT_EQ(verified.str(),
            "CONFIRMED resnet-bn: differs\nCONFIRMED uneven-mean: same\n\nconfirmed 1: differs\nconfirmed 1: same\n"
            "not taken 1\n");
  nlohmann::json other = certificate;
  for (nlohmann::json& one : other["cases"])
    if (one["case"] == "uneven-mean") one["weights"][2]["needed"] = "1/4";
  std::ofstream(folder / "other.json") << other;
  EXPECT_EQ(verify_certificate(folder / "other.json", verified), 2);
  EXPECT_EQ(certificate["row_lemmas"]["version"], kLemmasVersion);
  EXPECT_GT(certificate["assumptions"].size(), 2U);
}

/// Random layers give other numbers in each run, which a certificate tells and a check does not compare.
TEST(StepCases, ACertificateOfARandomStepIsConfirmed) {
  const TemporaryFolder folder;
  std::ostringstream out;
  EXPECT_EQ(prove_steps({"dropout", 0, 1, folder / "p.json"}, out), 1);
  EXPECT_EQ(verify_certificate(folder / "p.json", out), 1) << out.str();
  EXPECT_NE(out.str().find("CONFIRMED dropout: differs\n\nconfirmed 1: differs\n"), std::string::npos) << out.str();
}

/// The case has 10 rows for 4 micro-batches; 16 micro-batches get 40.
TEST(StepCases, MoreMicrobatchesGetMoreRows) {
  std::ostringstream out;
  EXPECT_EQ(prove_steps({"uneven-mean", 16, 1, {}}, out), 0);
  EXPECT_NE(out.str().find("needed 3/40 x 8, 1/20 x 8; used 3/40 x 8, 1/20 x 8"), std::string::npos) << out.str();
}

TEST(StepCases, NothingThatCanBeTakenIsAnError) {
  std::ostringstream out;
  EXPECT_THROW(prove_steps({"exact-eval-only", 0, 1, {}}, out), InputError);
  EXPECT_THROW(prove_steps({"no-such-case", 0, 1, {}}, out), InputError);
}

}  // namespace
}  // namespace plumbline::proof
