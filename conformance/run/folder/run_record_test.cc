#include "conformance/run/folder/run_record.h"

#include <gtest/gtest.h>

#include <limits>

#include "runtime/io/temporary_folder.h"
#include "runtime/io/tensor_file.h"
#include "runtime/io/write_file.h"
#include "runtime/testing/refusal.h"

namespace plumbline::conformance {
namespace {

RunRecord record() {
  return {std::numeric_limits<uint64_t>::max(),
          4,
          "runtime",
          R"({"version":"2","name":"x"})",
          {{"commit", "abc"}, {"mutant", ""}},
          {{{"mlp", "1f1b", 4, "mpi"}}, {{"mlp", "a/b.csv", 1, "threads"}, "0F0,0B0\n", "too few rows"}}};
}

TEST(RunRecord, ComesBackAsItWasWritten) {
  const TemporaryFolder folder;
  write_run_record(folder / "run.json", record());
  const RunRecord read = read_run_record(folder / "run.json");
  EXPECT_EQ(difference(record(), read), "");
  EXPECT_EQ(read.seed, record().seed);
  EXPECT_EQ(read.runs, record().runs);
  EXPECT_EQ(read.options, record().options);
}

TEST(RunRecord, NamesTheFirstThingThatIsNotAsBefore) {
  const auto changed = [](const auto& change) {
    RunRecord now = record();
    change(now);
    return difference(record(), now);
  };
  EXPECT_EQ(changed([](RunRecord& r) { r.seed = 3; }), "seed is 3, the interrupted run had 18446744073709551615");
  EXPECT_EQ(changed([](RunRecord& r) { r.microbatches = 0; }), "microbatches is 0, the interrupted run had 4");
  EXPECT_EQ(changed([](RunRecord& r) { r.backend = "torch"; }), "backend is torch, the interrupted run had runtime");
  EXPECT_NE(changed([](RunRecord& r) { r.describe = R"({"name":"x","version":"3"})"; }), "");
  EXPECT_EQ(changed([](RunRecord& r) { r.describe = R"({"name":"x","version":"2"})"; }), "");
  EXPECT_EQ(changed([](RunRecord& r) { r.options[1].second = "x"; }), "mutant is x, the interrupted run had none");
  EXPECT_EQ(changed([](RunRecord& r) { r.options.pop_back(), r.options.emplace_back("new", "1"); }),
            "new is 1, the interrupted run had none");
  EXPECT_EQ(changed([](RunRecord& r) { r.runs.pop_back(); }), "the number of runs is 1, the interrupted run had 2");
  EXPECT_EQ(changed([](RunRecord& r) { r.runs[0].id.ranks = 2; }),
            "run 0 is mlp x 1f1b (2 ranks, mpi), the interrupted run had mlp x 1f1b (4 ranks, mpi)");
  EXPECT_NE(changed([](RunRecord& r) { r.runs[1].csv = "0F0\n"; }), "");
}

TEST(RunRecord, RefusesWhatItDidNotWriteInOneLine) {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder / "run.json";
  write_run_record(path, record());
  const std::string good = read_file(path);
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    const size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return text.replace(at, from.size(), to);
  };
  const std::vector<std::pair<std::string, std::string>> files = {
      {"", "not JSON"},
      {good.substr(0, good.size() / 2), "not JSON"},
      {"\xff\xfe", "not JSON"},
      {"[]", "object"},
      {with("plumbline-run/1", "plumbline-run/9"), "plumbline-run/1"},
      {with("\"18446744073709551615\"", "\"18446744073709551616\""), "seed"},
      {with("\"18446744073709551615\"", "NaN"), "not JSON"},
      {with("\"ranks\": 4", "\"ranks\": 4.5"), "runs[0].ranks: expected an integer"},
      {with("\"ranks\": 4", "\"ranks\": 2000000000"), "runs[0].ranks: expected an integer from 1 to 4096"},
      {with("\"ranks\": 4", "\"ranks\": 1e300"), "runs[0].ranks: expected an integer"},
      {with("\"ranks\": 4", "\"ranks\": -4"), "runs[0].ranks: expected an integer"},
      {with("\"csv\"", "\"cvs\""), "cvs"},
      {with("\"runs\"", "\"walks\""), "walks"},
      {with("\"commit\": \"abc\"", "\"commit\": 3"), "options.commit: expected a string"},
      {with("\"commit\"", "\"device\""), "options.device: expected one of cpu, cuda, not \"abc\""},
  };
  for (const auto& [text, expected] : files) {
    write_file(path, text);
    testing::expect_line(testing::refusal([&] { read_run_record(path); }), path.string(), expected);
  }
}

}  // namespace
}  // namespace plumbline::conformance
