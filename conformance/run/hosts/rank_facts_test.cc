#include "conformance/run/hosts/rank_facts.h"

#include <gtest/gtest.h>

#include "runtime/error.h"
#include "runtime/testing/refusal.h"

namespace plumbline::conformance {
namespace {

std::vector<RankFacts> four_ranks() {
  RankFacts facts{
      .host = "a", .plumbline = "1.0", .libtorch = "2.15", .mpi = "MPI 4", .cores = {0, 1}, .sees_folder = true};
  std::vector<RankFacts> ranks(4, facts);
  ranks[1].host = ranks[3].host = "b";
  return ranks;
}

TEST(RankFacts, AreReadAsTheyWereWritten) {
  RankFacts facts = four_ranks()[1];
  facts.clock_offset = -0.25, facts.clock_error = 1e-5;
  const RankFacts read = read_rank_facts(to_json(facts));
  EXPECT_EQ(to_json(read), to_json(facts));
  EXPECT_EQ(read.cores, facts.cores);
  EXPECT_EQ(read.clock_offset, -0.25);
  EXPECT_THROW(read_rank_facts("{}"), InputError);
  EXPECT_THROW(read_rank_facts("plumbline 0.1"), InputError);
  EXPECT_EQ(testing::refusal([] { read_rank_facts(R"({"cores": [0, 1e30]})"); }),
            "a rank's answer: cores[1]: expected an integer from 0 to 1048576, not 1e+30; install the same "
            "plumbline on every host");
}

TEST(RankFacts, HostsWithTheirRanks) {
  std::vector<RankFacts> ranks = four_ranks();
  EXPECT_EQ(hosts_found(ranks), "4 ranks on 2 hosts: a has 0, 2; b has 1, 3");
  ranks[1].host = "a";
  EXPECT_EQ(hosts_found(ranks), "4 ranks on 2 hosts: a has 0-2; b has 3");
}

TEST(RankFacts, AnotherVersionIsNamedWithItsRank) {
  std::vector<RankFacts> ranks = four_ranks();
  EXPECT_EQ(versions_found(ranks), "plumbline 1.0, LibTorch 2.15, MPI 4");
  ranks[3].libtorch = "2.11";
  try {
    versions_found(ranks);
    ADD_FAILURE() << "two versions of LibTorch";
  } catch (const Error& error) {
    EXPECT_TRUE(std::string(error.what()).starts_with("rank 3 (b) has plumbline 1.0, LibTorch 2.11")) << error.what();
  }
}

TEST(RankFacts, AFolderThatIsNotShared) {
  std::vector<RankFacts> ranks = four_ranks();
  EXPECT_EQ(folder_found(ranks), "every rank sees rank 0's working folder");
  ranks[1].sees_folder = ranks[3].sees_folder = false;
  EXPECT_TRUE(folder_found(ranks).starts_with("ranks 1, 3 do not see")) << folder_found(ranks);
}

TEST(RankFacts, TheClockThatDiffersMost) {
  std::vector<RankFacts> ranks = four_ranks();
  for (RankFacts& facts : ranks) facts.clock_error = 2e-5;
  ranks[1].clock_offset = 1e-5;
  EXPECT_TRUE(clocks_found(ranks).starts_with("no clock differs")) << clocks_found(ranks);
  ranks[1].clock_offset = 1e-3, ranks[2].clock_offset = -0.5;
  EXPECT_TRUE(clocks_found(ranks).find("-500 ms at rank 2 (a), measured to 20 us") != std::string::npos)
      << clocks_found(ranks);
  ranks[2].clock_error = 1;  // larger than its offset, which may be none
  EXPECT_TRUE(clocks_found(ranks).find("1 ms at rank 1 (") != std::string::npos) << clocks_found(ranks);
}

TEST(RankFacts, RanksThatShareCores) {
  std::vector<RankFacts> ranks = four_ranks();
  EXPECT_EQ(cores_found(ranks),
            "2 ranks on 2 cores of a, not bound to cores of their own; "
            "2 ranks on 2 cores of b, not bound to cores of their own");
  ranks[0].cores = {0}, ranks[2].cores = {1};
  ranks[1].cores = ranks[3].cores = {5};
  EXPECT_EQ(cores_found(ranks),
            "2 ranks on 2 cores of a, each bound to its own; "
            "2 ranks share 1 core of b: their speed is not what it would be alone");
}

TEST(RankFacts, TheSlowestLink) {
  const std::vector<RankFacts> ranks = four_ranks();
  const std::vector<Link> links = {{0, 1, 1e-6, 4e9}, {1, 2, 3e-5, 1e9}, {0, 2, 2e-6, 3e9}};
  EXPECT_EQ(links_found(ranks, links),
            "slowest: rank 1 (b) to rank 2 (a): 1 GB/s, 8 bytes in 30 us; "
            "fastest: rank 0 (a) to rank 1 (b): 4 GB/s, 8 bytes in 1 us");
  EXPECT_EQ(links_found(ranks, {}), "one rank: nothing to measure");
}

}  // namespace
}  // namespace plumbline::conformance
