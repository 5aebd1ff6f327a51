// A user's own cases, a folder of TOML files, from the command line.
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "conformance/cli/testing/cli_fixture.h"

namespace plumbline::cli {
namespace {

constexpr const char* kCases = R"(schema = "plumbline-cases/1"

[schedules]
backwards = """
0F1,0F0,0B1,0B0
1F1,1F0,1B1,1B0
"""

[[case]]
id = "my-uneven"
title = "eight layers, 11 rows over 4 micro-batches"
why = "the last micro-batch taken for as large as the first"
truth = "same-order"
model = "mlp"
loss = {kind = "mse", reduction = "mean"}
rows = 11

[[case]]
id = "my-exact"
title = "eight layers, 2 micro-batches"
why = "a mean over micro-batches taken for one over rows"
truth = "exact"
model = "exact-mlp"
microbatches = 2
loss = {kind = "mse", reduction = "sum"}

[[case]]
id = "my-order"
title = "the last micro-batch first"
why = "a first micro-batch that is taken for number 0"
truth = "exact"
model = "exact-mlp"
microbatches = 2
loss = {kind = "mse", reduction = "sum"}
schedule = "backwards"
)";

/// It divides by three.
constexpr const char* kInexact = R"(schema = "plumbline-cases/1"
[[case]]
id = "my-inexact"
title = "gradients divided by three"
why = "a claim that does not hold"
truth = "exact"
model = "exact-mlp"
rows = 6
microbatches = 3
loss = {kind = "mse", reduction = "sum"}
)";

/// One row reads two of the table's 16 entries, and nothing else learns.
constexpr const char* kMostlyZero = R"(schema = "plumbline-cases/1"
[[case]]
id = "my-zeros"
title = "a table alone learns, from one row"
why = "gradients that are mostly zero"
truth = "exact"
model = "exact-multi-io"
rows = 1
microbatches = 1
loss = {kind = "mse", reduction = "sum"}
steps = [{kind = "freeze", parameters = "layers.*"}, "train"]
)";

/// A float64 run draws other masks.
constexpr const char* kUnbounded = R"(schema = "plumbline-cases/1"
[[case]]
id = "my-dropout"
title = "dropout, held to bounds"
why = "bounds that there are not"
truth = "bounded"
model = "mlp-dropout"
loss = {kind = "mse", reduction = "mean"}
)";

/// It has several targets, which a sum does not take.
constexpr const char* kUnfit = R"(schema = "plumbline-cases/1"
[[case]]
id = "my-heads"
title = "three outputs and their sum"
why = "a loss without targets"
truth = "exact"
model = "exact-heads"
loss = {kind = "sum", reduction = "sum"}
)";

class OwnCases : public Cli {
 protected:
  void SetUp() override {
    Cli::SetUp();
    fs::create_directories(folder_ / "mine");
    std::ofstream(folder_ / "mine" / "cases.toml") << kCases;
    fs::create_directories(folder_ / "claims");
    std::ofstream(folder_ / "claims" / "inexact.toml") << kInexact;
  }

  conformance::ProcessResult run(const std::string& cases, const std::vector<std::string>& more = {}) const {
    std::vector<std::string> words = {"run",      "--corpus", "mine", "--case",   cases,      "--schedule",
                                      "1f1b,own", "--ranks",  "2",    "--report", report("r")};
    words.insert(words.end(), more.begin(), more.end());
    return start(words);
  }

  /// "pass my-exact 1f1b", in the order of the report.
  std::vector<std::string> verdicts() const {
    std::vector<std::string> all;
    const nlohmann::json json = nlohmann::json::parse(std::ifstream(folder_ / "r" / "report.json"));
    for (const auto& verdict : json.at("verdicts"))
      if (verdict.at("status") != "unsupported")
        all.push_back(verdict.at("status").get<std::string>() + " " + verdict.at("case").get<std::string>() + " " +
                      verdict.at("schedule").get<std::string>());
    return all;
  }
};

void expect_part(const conformance::ProcessResult& result, const std::string& part) {
  EXPECT_NE(result.output.find(part), std::string::npos) << result.output << "\nlacks: " << part;
}

const std::vector<std::string> kAllPass = {"pass my-uneven 1f1b", "pass my-exact 1f1b", "pass my-order own"};

TEST_F(OwnCases, RunAndPassAndCanBeCheckedWithoutTheFolder) {
  const conformance::ProcessResult result = run("my-*");
  EXPECT_EQ(exit_code(result), 0) << result.output;
  EXPECT_EQ(verdicts(), kAllPass);
  fs::remove_all(folder_ / "mine");
  const conformance::ProcessResult checked = start({"check", "r"});
  EXPECT_EQ(exit_code(checked), 0) << checked.output;
  EXPECT_EQ(exit_code(start({"check", "r", "--case", "exact-mlp-sum"})), 2);
}

TEST_F(OwnCases, FailUnderAMutantAndThePrintedLineRepeatsIt) {
  const conformance::ProcessResult result = run("my-exact", {"--mutant", "drop-last-microbatch"});
  EXPECT_EQ(exit_code(result), 1) << result.output;
  expect_part(result, "FAIL my-exact x 1f1b");
  const std::string before = "repeat: ";
  const size_t at = result.output.find(before);
  ASSERT_NE(at, std::string::npos) << result.output;
  std::istringstream line(result.output.substr(at + before.size(), result.output.find('\n', at) - at - before.size()));
  std::vector<std::string> words;
  for (std::string word; line >> word;) words.push_back(word);
  words.erase(words.begin());  // the program, which start() adds
  const conformance::ProcessResult again = start(words);
  EXPECT_EQ(exit_code(again), 1) << again.output;
  expect_part(again, "FAIL my-exact x 1f1b");
}

TEST_F(OwnCases, KillMutants) {
  const conformance::ProcessResult result =
      start({"mutants", "--matrix", "--mutant", "drop-last-microbatch", "--killers", "1", "--corpus", "mine", "--case",
             "my-exact", "--schedule", "gpipe", "--ranks", "2"});
  EXPECT_EQ(exit_code(result), 0) << result.output;
  expect_part(result, "my-exact");
}

TEST_F(OwnCases, RunOverMpi) {
  if (!with_mpi()) GTEST_SKIP() << "built without MPI";
  const conformance::ProcessResult started = run("my-*", {"--transport", "mpi"});
  EXPECT_EQ(exit_code(started), 0) << started.output;
  EXPECT_EQ(verdicts(), kAllPass);
  const conformance::ProcessResult under =
      start({"run", "--corpus", "mine", "--case", "my-*", "--schedule", "1f1b,own", "--report", report("r")},
            {"mpirun", "-n", "2"});
  EXPECT_EQ(exit_code(under), 0) << under.output;
  EXPECT_EQ(verdicts(), kAllPass);
}

TEST_F(OwnCases, AreResumedUnlessTheyHaveChanged) {
  EXPECT_EQ(exit_code(run("my-exact")), 0);
  const conformance::ProcessResult resumed = run("my-exact", {"--resume"});
  EXPECT_EQ(exit_code(resumed), 0) << resumed.output;
  expect_part(resumed, "resumed: 1 of 1");
  std::ofstream(folder_ / "mine" / "cases.toml", std::ios::app) << "rows = 8\n";
  const conformance::ProcessResult changed = run("my-exact", {"--resume"});
  EXPECT_EQ(exit_code(changed), 2) << changed.output;
  expect_part(changed, "corpus is mine (");
}

/// The folder of a report is a folder of cases as well.
TEST_F(OwnCases, AReportsCopyCanBeRunIntoTheSameReport) {
  EXPECT_EQ(exit_code(run("my-exact")), 0);
  const conformance::ProcessResult again = start({"run", "--corpus", "r/results/corpus", "--case", "my-exact",
                                                  "--schedule", "gpipe", "--ranks", "2", "--report", report("r")});
  EXPECT_EQ(exit_code(again), 0) << again.output;
  EXPECT_EQ(exit_code(start({"check", "r"})), 0);
}

TEST_F(OwnCases, AreListedAndExported) {
  expect_part(start({"list", "--corpus", "mine", "--case", "my-*"}),
              "my-uneven  same-order  eight layers, 11 rows over 4 micro-batches");
  const conformance::ProcessResult all = start({"list", "--corpus", "mine", "--json"}),
                                   ours = start({"list", "--json"});
  EXPECT_EQ(nlohmann::json::parse(all.output).size(), nlohmann::json::parse(ours.output).size() + 3);
  EXPECT_EQ(exit_code(start({"export", "--corpus", "mine", "--case", "my-*", "--ranks", "2", "-o", "out"})), 0);
  const nlohmann::json exported = nlohmann::json::parse(std::ifstream(folder_ / "out/my-uneven/1f1b-2/case.json"));
  EXPECT_EQ(exported.at("why"), "the last micro-batch taken for as large as the first");
  EXPECT_EQ(exported.at("truth"), "same-order");
  EXPECT_TRUE(fs::exists(folder_ / "out/my-order/own-2/case.json"));
}

TEST_F(OwnCases, GoToForeignBackendsAsFiles) {
  const char* host = std::getenv("PLUMBLINE_C_HOST");
  ASSERT_NE(host, nullptr) << "set PLUMBLINE_C_HOST to the c_host executable";
  if (*host == 0) GTEST_SKIP() << "c_host is not built: no cJSON";
  const conformance::ProcessResult result = run("my-exact", {"--backend", host});
  EXPECT_EQ(exit_code(result), 0) << result.output;
  EXPECT_EQ(verdicts(), std::vector<std::string>{"pass my-exact 1f1b"});
  EXPECT_FALSE(nlohmann::json::parse(std::ifstream(folder_ / "r/results/own-2/job.json")).contains("corpus"));
  EXPECT_EQ(exit_code(start({"check", "r"})), 0);
}

TEST_F(OwnCases, AnUnprovenClaimOfExactnessIsMistrustedAndNotExported) {
  const std::string why = "it is not proven exact: gradients are divided by 3, which is not a power of two";
  const conformance::ProcessResult result = start(
      {"run", "--corpus", "claims", "--case", "my-*", "--schedule", "gpipe", "--ranks", "2", "--report", report("r")});
  EXPECT_EQ(exit_code(result), 1) << result.output;
  EXPECT_EQ(verdicts(), std::vector<std::string>{"mistrusted my-inexact gpipe"});
  expect_part(result, why);
  const conformance::ProcessResult exported =
      start({"export", "--corpus", "claims", "--case", "my-*", "--ranks", "2", "-o", "out"});
  EXPECT_EQ(exit_code(exported), 2) << exported.output;
  expect_part(exported, "not exported: my-inexact x 1f1b: " + why);
}

TEST_F(OwnCases, BoundsThatThereAreNotSkipTheCase) {
  std::ofstream(folder_ / "claims" / "dropout.toml") << kUnbounded;
  const conformance::ProcessResult result = start({"run", "--corpus", "claims", "--case", "my-dropout", "--schedule",
                                                   "gpipe", "--ranks", "2", "--report", report("r")});
  EXPECT_EQ(exit_code(result), 3) << result.output;
  EXPECT_EQ(verdicts(), std::vector<std::string>{"skipped my-dropout gpipe"});
  expect_part(result, "with random layers the whole model in float64 draws other masks");
}

TEST_F(OwnCases, AWaivedMistrustIsThatOfItsFiles) {
  std::ofstream(folder_ / "claims" / "zeros.toml") << kMostlyZero;
  const std::vector<std::string> words = {"run",   "--corpus", "claims", "--case",   "my-zeros", "--schedule",
                                          "gpipe", "--ranks",  "2",      "--report", report("r")};
  EXPECT_EQ(exit_code(start(words)), 1);
  EXPECT_EQ(verdicts(), std::vector<std::string>{"mistrusted my-zeros gpipe"});
  EXPECT_EQ(exit_code(start({"check", "r"})), 1);

  std::ofstream(folder_ / "w.toml") << "schema = \"plumbline-waivers/1\"\n[[waiver]]\ncase = \"my-zeros\"\n"
                                       "expect = \"mistrusted\"\nlink = \"https://x\"\nreason = \"known\"\n"
                                       "expires = 2999-01-01\n";
  std::vector<std::string> waived = words;
  waived.insert(waived.end(), {"--waivers", "w.toml"});
  EXPECT_EQ(exit_code(start(waived)), 0);
  EXPECT_EQ(verdicts(), std::vector<std::string>{"xfail my-zeros gpipe"});
  const conformance::ProcessResult checked = start({"check", "r"});
  EXPECT_EQ(exit_code(checked), 0) << checked.output;
}

TEST_F(OwnCases, MistakesEndWithTwoAndOneLine) {
  for (const char* name : {"empty", "broken", "taken", "unfit"}) fs::create_directories(folder_ / name);
  std::ofstream(folder_ / "broken" / "b.toml") << "schema = \"plumbline-cases/1\"\n[[case]]\nid = \"x\"\nrow = 3\n";
  std::string taken = kCases;
  taken.replace(taken.find("my-exact"), 8, "exact-tied");
  std::ofstream(folder_ / "taken" / "t.toml") << taken;
  std::ofstream(folder_ / "unfit" / "u.toml") << kUnfit;
  expect_refused({
      {{"run", "--corpus", "nowhere"}, "--corpus: folder 'nowhere' cannot be read"},
      {{"list", "--corpus", "empty"}, "--corpus: folder 'empty' has no file *.toml"},
      {{"export", "--corpus", "broken", "-o", "out"}, "broken/b.toml:4: case: no key 'row' is known; nearest: rows, "},
      {{"run", "--corpus", "taken"},
       "taken/t.toml:19: id: 'exact-tied' is taken, at conformance/corpus/cases/exact_basics.toml:"},
      {{"run", "--corpus", "unfit", "--case", "my-heads", "--schedule", "1f1b", "--ranks", "2"},
       "model: 'exact-heads' has several targets, but the loss of case my-heads does not fit"},
      {{"run", "--corpus", "mine", "--corpus", "claims"}, "--corpus"},
      {{"mutants", "--corpus", "mine"}, "--corpus goes with --matrix or --random"},
      {{"run", "--program", "m.pt2", "--corpus", "mine"}, "--corpus is about cases"},
      {{"list", "--case", "my-exact"}, "no case matches 'my-exact'"},
      {{"run", "--corpus", "mine", "--case", "my-exakt"}, "no case matches 'my-exakt'; nearest: my-exact"},
  });
}

}  // namespace
}  // namespace plumbline::cli
