#include "conformance/judge/rank_files.h"

#include <gtest/gtest.h>

#include <cstring>

#include "conformance/protocol/report_folder.h"
#include "runtime/error.h"
#include "runtime/io/temporary_folder.h"
#include "runtime/io/write_file.h"
#include "runtime/testing/refusal.h"

namespace plumbline::conformance {
namespace {

TEST(RankFiles, RanksThatDisagreeOnACopyAreNamed) {
  const TemporaryFolder folder;
  write_tensor_file(folder / "rank0", {{"0/grad/-/-/w", make_f64({2}, {1, 2})}, {"0/grad/-/-/b", make_f64({}, {1})}});
  write_tensor_file(folder / "rank1", {{"0/grad/-/-/w", make_f64({2}, {1, 2})}});
  write_tensor_file(folder / "rank2", {{"0/grad/-/-/w", make_f64({2}, {1, 3})}});
  const auto read = [&](const std::vector<std::filesystem::path>& files) {
    return read_rank_files(folder.path(), files);
  };
  const Merged equal = merge_copies(read({folder / "rank0", folder / "rank1"}));
  EXPECT_EQ(equal.results.size(), 2u);
  EXPECT_TRUE(equal.contested.empty());
  const std::vector<RankResults> three = read({folder / "rank0", folder / "rank1", folder / "rank2"});
  const Merged merged = merge_copies(three);
  EXPECT_EQ(merged.results.at("0/grad/-/-/w"), make_f64({2}, {1, 2}));
  ASSERT_EQ(merged.contested.size(), 1u);
  const auto& [key, contested] = *merged.contested.begin();
  EXPECT_EQ(key, "0/grad/-/-/w");
  EXPECT_EQ(contested.other, make_f64({2}, {1, 3}));
  EXPECT_EQ(contested.kept_from, "rank 0");
  EXPECT_EQ(contested.other_from, "rank 2");
  EXPECT_EQ(testing::failure([&] { merge_results(three); }),
            "rank 0 and rank 2 disagree on 0/grad/-/-/w (copies of one tensor must be equal)");
  EXPECT_THROW(read({folder / "rank0", folder / "nowhere"}), Error);
}

TEST(RankFiles, TensorsOfAnyNamesAreMerged) {
  const TensorMap first = {{"grad.w", make_f64({1}, {2})}, {"a", make_f64({}, {1})}};
  const TensorMap other = {{"grad.w", make_f64({1}, {3})}, {"b", make_f64({}, {1})}};
  EXPECT_EQ(uncontested(merge_named({{"stage 0", first}, {"stage 2", first}})), first);
  EXPECT_EQ(uncontested(merge_named({})), TensorMap());
  const Merged merged = merge_named({{"stage 0", first}, {"stage 2", other}});
  EXPECT_EQ(merged.results.size(), 3u);
  EXPECT_EQ(testing::failure([&] { uncontested(merged); }),
            "stage 0 and stage 2 disagree on grad.w (copies of one tensor must be equal)");
}

TEST(RankFiles, AGradientThatOneCopyLacksIsNotAnsweredForByAnother) {
  const TensorMap both = {{"0/grad/-/-/w", make_f64({1}, {2})}, {"2/param/-/-/w", make_f64({1}, {1})}};
  const TensorMap without = {{"2/param/-/-/w", make_f64({1}, {1})}},
                  elsewhere = {{"2/param/-/-/b", make_f64({1}, {1})}};
  EXPECT_EQ(merge_results({{"rank 0", both}, {"rank 1", both}, {"rank 2", elsewhere}}).size(), 3u);
  for (const auto& ranks : {std::vector<RankResults>{{"rank 0", both}, {"rank 1", without}},
                            std::vector<RankResults>{{"rank 1", without}, {"rank 0", both}}})
    EXPECT_EQ(testing::failure([&] { merge_results(ranks); }),
              "rank 1 has a copy of w but lacks 0/grad/-/-/w, which another rank has");
}

TEST(RankFiles, AReplicaThatDeliversNothingIsNotAnsweredForByAnother) {
  const TensorMap first = {{"0/grad/-/-/w", make_f64({1}, {2})}, {"0/loss/-/0/loss", make_f64({}, {1})}};
  const TensorMap second = {{"0/grad/-/-/b", make_f64({1}, {2})}, {"0/loss/-/1/loss", make_f64({}, {1})}};
  const std::vector<RankResults> both = {
      {"rank 0", first, 0}, {"rank 1", second, 1}, {"rank 2", first, 2}, {"rank 3", second, 3}};
  EXPECT_EQ(merge_results(both, {2, 2}).size(), 4u);
  const std::vector<RankResults> silent = {both[0], both[1], both[2]};
  EXPECT_EQ(testing::failure([&] { merge_results(silent, {2, 2}); }),
            "replica 1 (ranks 2 to 3) lacks 0/grad/-/-/b, which another replica has");
  EXPECT_EQ(merge_results(silent).size(), 4u) << "losses are delivered once";
  EXPECT_EQ(testing::failure([&] { merge_results({both[1]}, {2, 1}); }),
            "replica 0 (rank 0) lacks 0/grad/-/-/b, which another replica has; each needs a file of its own");
  const TemporaryFolder folder;
  write_tensor_file(folder / "rank0.safetensors", first);
  write_tensor_file(folder / "rank10.safetensors", first);
  const std::vector<std::filesystem::path> files = {folder / "rank0.safetensors", folder / "rank10.safetensors"};
  EXPECT_EQ(merge_results(read_rank_files(folder.path(), files), {2, 10}).size(), 2u);
  EXPECT_EQ(testing::failure([&] { merge_results(read_rank_files(folder.path(), files), {2, 20}); }),
            "replica 1 (ranks 20 to 39) lacks 0/grad/-/-/w, which another replica has; each needs a file of its own");
}

TEST(RankFiles, AFileOfARankThatTheJobDoesNotHaveIsRefused) {
  const TemporaryFolder folder;
  const JobCase item{.id = "mlp", .schedule = "1f1b", .results = "1f1b/mlp/rank"};
  std::filesystem::create_directories(folder / "1f1b/mlp");
  for (const char* rank : {"0", "2", "11"})
    write_tensor_file(folder / ("1f1b/mlp/rank" + std::string(rank) + ".safetensors"), {});
  const auto why = [&](int ranks) {
    return testing::failure([&] { result_files_of_ranks(folder.path(), item, ranks); });
  };
  EXPECT_EQ(why(12), "accepted") << "each rank may write or not";
  EXPECT_EQ(result_files_of_ranks(folder.path(), item, 12).size(), 3u);
  testing::expect_line(why(11), (folder / "1f1b/mlp/rank11.safetensors").string(),
                       ": no such rank; the job has 11 ranks: 0 to 10");
  testing::expect_line(why(2), (folder / "1f1b/mlp/rank2.safetensors").string(), "the job has 2 ranks: 0 to 1");
  testing::expect_line(why(1), (folder / "1f1b/mlp/rank2.safetensors").string(), "the job has 1 rank: 0");
  for (const char* rank : {"", "-1", "01", "0x", "99999999999999999999", "\xff"}) {
    const std::string stray = (folder / ("1f1b/mlp/rank" + std::string(rank) + ".safetensors")).string();
    write_tensor_file(stray, {});
    testing::expect_line(why(12), stray, ": no such rank; the job has 12 ranks: 0 to 11");
    std::filesystem::remove(stray);
  }
  EXPECT_EQ(why(12), "accepted");
}

/// A file in the layout of safetensors: the length of the header, the header, the data.
std::string file_of(const std::string& header, const std::string& data) {
  const uint64_t length = header.size();
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &length, 8);
  return bytes + header + data;
}

TEST(RankFiles, EveryKindOfCorruptFileIsNamedInOneLine) {
  const std::string good = file_of(R"({"0/loss/-/0/loss":{"dtype":"F32","shape":[],"data_offsets":[0,4]}})", "abcd");
  std::string four_gib = good;
  four_gib.replace(0, 8, std::string("\x00\x00\x00\x00\x01\x00\x00\x00", 8));
  std::string all_ones = good;
  all_ones.replace(0, 8, std::string(8, '\xff'));
  const auto entry = [](const std::string& rest, const std::string& data = "abcd") {
    return file_of("{\"0/loss/-/0/loss\":{" + rest + "}}", data);
  };
  const std::vector<std::pair<std::string, std::string>> files = {
      {"", "truncated"},
      {good.substr(0, 5), "truncated"},
      {good.substr(0, 40), "truncated"},
      {good.substr(0, good.size() - 1), "truncated"},
      {good + "x", "after the last tensor"},
      {four_gib, "header length 4294967296"},
      {all_ones, "header length"},
      {file_of("{\"0/loss/-/0/\xff\":1}", ""), "not JSON"},
      {file_of("[]", ""), "not a JSON object"},
      {file_of("{\"a\":{", ""), "not JSON"},
      {file_of("{\"__metadata__\":[]}", ""), "__metadata__ is not an object of strings"},
      {file_of("{\"__metadata__\":{\"a\":1}}", ""), "__metadata__ is not an object of strings"},
      {file_of("\xef\xbb\xbf{}", ""), "not a JSON object"},
      {file_of("{\"a\":" + std::string(5000, '['), ""), "nested lists and objects"},
      {entry(R"("dtype":"F33","shape":[],"data_offsets":[0,4])"), "expected one of F32"},
      {entry(R"("dtype":3,"shape":[],"data_offsets":[0,4])"), "expected one of F32"},
      {entry(R"("dtype":"F32","shape":[-1],"data_offsets":[0,4])"), "not a list of sizes"},
      {entry(R"("dtype":"F32","shape":[1.5],"data_offsets":[0,4])"), "not a list of sizes"},
      {entry(R"("dtype":"F32","shape":[18446744073709551615],"data_offsets":[0,4])"), "not a list of sizes"},
      {entry(R"("dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,4])"), "2^63"},
      {entry(R"("dtype":"F32","shape":[4294967296,4294967296,0],"data_offsets":[0,0])", ""), "2^63"},
      {entry(R"("dtype":"F64","shape":[],"data_offsets":[0,4])"), "takes 8 bytes"},
      {entry(R"("dtype":"F32","shape":[],"data_offsets":[4,0])"), "outside"},
      {entry(R"("dtype":"F32","shape":[],"data_offsets":[0,18446744073709551615])"), "outside"},
      {entry(R"("dtype":"F32","shape":"NaN","data_offsets":[0,4])"), "not a list of sizes"},
      {entry(R"("dtype":"F32","shape":[NaN],"data_offsets":[0,4])"), "not JSON"},
      {file_of(R"({"nonsense":{"dtype":"F32","shape":[],"data_offsets":[0,4]}})", "abcd"), "nonsense"},
      {file_of(R"({"0/loss/-/0/":{"dtype":"F32","shape":[],"data_offsets":[0,4]}})", "abcd"), "0/loss/-/0/"},
      {file_of(R"({"99999999999999999999/loss/-/0/l":{"dtype":"F32","shape":[],"data_offsets":[0,4]}})", "abcd"),
       "99999999999999999999"},
  };
  const TemporaryFolder folder;
  const std::filesystem::path path = folder / "rank0.safetensors";
  write_file(path, good);
  EXPECT_EQ(read_rank_files(folder.path(), {path}).size(), 1u);
  for (const auto& [bytes, expected] : files) {
    write_file(path, bytes);
    testing::expect_line(testing::failure([&] { read_rank_files(folder.path(), {path}); }), path.string(), expected);
  }
}

}  // namespace
}  // namespace plumbline::conformance
