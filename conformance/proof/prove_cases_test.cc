#include "conformance/proof/prove_cases.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "conformance/proof/certificate.h"
#include "conformance/proof/terms/normalisations.h"
#include "conformance/proof/verify.h"
#include "runtime/error.h"
#include "runtime/io/temporary_folder.h"
#include "runtime/testing/refusal.h"

namespace plumbline::proof {
namespace {

class ProveCases : public ::testing::Test {
 protected:
  /// The exit code; the output is in `output_`, the certificate in `certificate_`.
  int prove(const std::string& cases, const std::string& schedules, const std::string& mutant = {}) {
    const std::filesystem::path path =
        std::filesystem::temp_directory_path() / ("plumbline-certificate-" + std::to_string(getpid()) + ".json");
    CasesOptions options;
    options.run.selection.case_glob = cases;
    options.run.selection.schedules = schedules;
    options.run.selection.ranks = {2};
    options.run.mutant = mutant;
    options.run.microbatches = microbatches_;
    options.certificate = path;
    std::ostringstream out;
    const int code = prove_cases(options, out);
    output_ = out.str();
    std::ifstream in(path);
    certificate_ = nlohmann::json::parse(in);
    std::filesystem::remove(path);
    return code;
  }

  /// The exit code of a check of the certificate; the output is in `output_`.
  int verify(const nlohmann::json& certificate) {
    const TemporaryFolder folder;
    std::ofstream(folder / "c.json") << certificate;
    std::ostringstream out;
    const int code = verify_certificate(folder / "c.json", out);
    output_ = out.str();
    return code;
  }

  int microbatches_ = 0;
  std::string output_;
  nlohmann::json certificate_;
};

TEST_F(ProveCases, TheCertificateSaysWhatIsProven) {
  EXPECT_EQ(prove("exact-mlp-sum,exact-tied", "gpipe"), 0) << output_;
  EXPECT_NE(output_.find("PROVEN exact-mlp-sum x gpipe (2 ranks, threads): 48 results\n"), std::string::npos)
      << output_;
  EXPECT_NE(output_.find("\nproven 2\n"), std::string::npos) << output_;
  ASSERT_EQ(certificate_["runs"].size(), 2U);
  const nlohmann::json& run = certificate_["runs"][0];
  EXPECT_EQ(run["outcome"], "proven");
  EXPECT_EQ(run["results"].size(), 16U + 16U + 4 * 4U);
  EXPECT_EQ(run["results"].count("0/backward/1/3/layers.3"), 1U) << run["results"];
  EXPECT_EQ(run["results"]["0/grad/-/-/layers.0.fc.weight"].get<std::string>().size(), 32U);
  EXPECT_EQ(run["constants"].size(), 0U);
  EXPECT_EQ(run["counted_operators"], true);
  EXPECT_NE(run["root"], certificate_["runs"][1]["root"]);
  EXPECT_EQ(certificate_["normalisations"]["version"], kNormalisationsVersion);
  EXPECT_EQ(certificate_["normalisations"]["list"].size(), normalisations().size());
  EXPECT_GT(certificate_["assumptions"].size(), 3U);
  EXPECT_GT(certificate_["not_proven"].size(), 3U);
}

TEST_F(ProveCases, ACertificateIsConfirmedOrWhatDiffersIsTold) {
  ASSERT_EQ(prove("exact-tied", "gpipe,1f1b"), 0) << output_;
  EXPECT_EQ(verify(certificate_), 0) << output_;
  EXPECT_EQ(output_,
            "CONFIRMED exact-tied x gpipe (2 ranks, threads): proven\n"
            "CONFIRMED exact-tied x 1f1b (2 ranks, threads): proven\n\nconfirmed 2: proven\n");
  nlohmann::json other = certificate_;
  std::string id = other["runs"][1]["results"]["0/grad/-/-/layers.1.fc.weight"];
  id[31] = id[31] == '0' ? '1' : '0';
  other["runs"][1]["results"]["0/grad/-/-/layers.1.fc.weight"] = id;
  EXPECT_EQ(verify(other), 2);
  EXPECT_NE(
      output_.find("NOT CONFIRMED exact-tied x 1f1b (2 ranks, threads): results 0/grad/-/-/layers.1.fc.weight: \"" +
                   id + "\" is certified, \""),
      std::string::npos)
      << output_;
  other = certificate_;
  other["runs"][0]["results"].erase("0/param/-/-/layers.1.fc.weight");
  EXPECT_EQ(verify(other), 2);
  EXPECT_NE(output_.find("results 0/param/-/-/layers.1.fc.weight: found now, and not certified"), std::string::npos)
      << output_;
}

/// A certificate of a refutation is confirmed as such; one that calls it proven is not.
TEST_F(ProveCases, ARefutationIsConfirmedAsOne) {
  ASSERT_EQ(prove("exact-mlp-mean", "1f1b", "drop-last-microbatch"), 1) << output_;
  EXPECT_EQ(verify(certificate_), 1) << output_;
  certificate_["runs"][0]["outcome"] = "proven";
  EXPECT_EQ(verify(certificate_), 2) << output_;
  certificate_["runs"][0]["mutant"] = "";
  EXPECT_EQ(verify(certificate_), 2) << output_;
  certificate_["format"] = 2;
  EXPECT_THROW(verify(certificate_), InputError);
}

/// The case has 8 rows; 32 micro-batches get 4 times as many.
TEST_F(ProveCases, MoreMicrobatchesThanRowsGetMoreRows) {
  microbatches_ = 32;
  EXPECT_EQ(prove("exact-mlp-mean,exact-uneven-rows", "1f1b"), 0) << output_;
  ASSERT_EQ(certificate_["runs"].size(), 2U);
  for (const nlohmann::json& run : certificate_["runs"]) EXPECT_EQ(run["microbatches"], 32);
  EXPECT_EQ(certificate_["runs"][0]["results"].size(), 2 * 16U + 4 * 32U)
      << "gradients and parameters, and of each micro-batch an output, a loss, a value between stages and its gradient";
  EXPECT_EQ(prove("exact-mlp-mean", "1f1b", "drop-last-microbatch"), 1) << output_;
  EXPECT_NE(output_.find("aten::sum.dim_IntList of micro-batch 31"), std::string::npos) << output_;
}

/// 1f1b executes whole backwards, zb-h1 halves, and both add micro-batches in ascending order.
TEST_F(ProveCases, SchedulesOfOneOrderHaveOneRoot) {
  EXPECT_EQ(prove("exact-mlp-sum", "1f1b,zb-h1"), 0) << output_;
  EXPECT_EQ(certificate_["runs"][0]["root"], certificate_["runs"][1]["root"]);
}

TEST_F(ProveCases, ARefutedRunIsCertifiedAsSuch) {
  EXPECT_EQ(prove("exact-mlp-sum", "gpipe", "drop-last-microbatch"), 1) << output_;
  EXPECT_NE(output_.find("REFUTED exact-mlp-sum x gpipe"), std::string::npos) << output_;
  const nlohmann::json& run = certificate_["runs"][0];
  EXPECT_EQ(run["outcome"], "refuted");
  EXPECT_NE(run["why"].get<std::string>().find("left out of a sum"), std::string::npos) << run["why"];
  EXPECT_EQ(run["differ"].size(), 16U);
  EXPECT_EQ(run["counted_operators"], false);
}

TEST_F(ProveCases, WhatCannotBeTakenIsSaid) {
  EXPECT_EQ(prove("clip,exact-mlp-sum", "gpipe"), 0) << output_;
  EXPECT_NE(output_.find("not taken 1: clip: the optimizer reads the norm"), std::string::npos) << output_;
  EXPECT_EQ(verify(certificate_), 0) << output_;
  nlohmann::json left = nlohmann::json::array();
  for (const nlohmann::json& run : certificate_["runs"])
    if (run["outcome"] == kNotTaken) left.push_back(run);
  ASSERT_EQ(left.size(), 1U);
  certificate_["runs"] = left;
  testing::expect_part(testing::refusal([&] { verify(certificate_); }), "nothing can be confirmed");
  EXPECT_THROW(prove("clip", "gpipe"), InputError);
  EXPECT_THROW(prove("no-such-case", "gpipe"), InputError);
  EXPECT_THROW(prove("exact-mlp-sum", "gpipe", "copy-lost"), InputError);  // it has no shared parameter
}

}  // namespace
}  // namespace plumbline::proof
