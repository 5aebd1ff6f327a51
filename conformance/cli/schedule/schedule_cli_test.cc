// plumbline schedule and plumbline simulate from the command line.
#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "conformance/cli/testing/cli_fixture.h"

namespace plumbline::cli {
namespace {

using ScheduleCli = Cli;

std::string file_text(const fs::path& path) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

TEST_F(ScheduleCli, BadInputEndsWithTwoAndOneLine) {
  std::ofstream(folder_ / "mine.csv") << "0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n";
  std::ofstream(folder_ / "stuck.csv") << "0F0,0B0,0F1,0B1\n1F0,1F1,1B0,1B1\n";
  std::ofstream(folder_ / "late.csv") << "0F0,0SEND_F0,0B0,0RECV_B0\n1RECV_F0,1F0,1B0,1SEND_B0\n";
  std::ofstream(folder_ / "notes.txt") << "0F0\n";
  fs::create_directories(folder_ / "folder.csv");
  const std::vector<std::pair<std::vector<std::string>, std::string>> inputs = {
      {{"schedule"}, "--list shows the names"},
      {{"schedule", "nonesuch"}, "gpipe, 1f1b"},
      {{"schedule", "nowhere.csv"}, "cannot read nowhere.csv: No such file"},
      {{"schedule", "folder.csv"}, "cannot read folder.csv: it is a folder; expected a file or a pipe"},
      {{"schedule", "notes.txt"}, "expected a file that ends in .csv"},
      {{"schedule", "mine.csv", "--ranks", "3"}, "2 ranks, not 3"},
      {{"schedule", "mine.csv", "--microbatches", "3"}, "2 micro-batches, not 3"},
      {{"schedule", "mine.csv", "--format", "pdf"}, "--format"},
      {{"schedule", "stuck.csv"}, "stuck.csv"},
      {{"schedule", "mine.csv", "--dialect", "2023"}, "expected 2024"},
      {{"schedule", "1f1b", "--dialect", "2024"}, "a dialect is for files"},
      {{"schedule", "gpipe", "--group-size", "2"}, "group size"},
      {{"schedule", "1f1b", "--ranks", "0"}, "--ranks"},
      {{"schedule", "gpipe", "--replicas", "65536", "--microbatches", "1024"},
       "data parallelism: 65536 replicas x 4 stages x 1024 micro-batches; at most 134217728 are accepted"},
      {{"simulate"}, "shows the names"},
      {{"simulate", "stuck.csv"}, "stuck.csv"},
      {{"simulate", "late.csv"}, "stands before 0RECV_B0"},
      {{"simulate", "1f1b", "--tf", "1,2"}, "--tf has 2 values for 4 stages"},
      {{"simulate", "1f1b", "--tf", "0"}, "a forward takes 0"},
      {{"simulate", "1f1b", "--tb", "soon"}, "--tb"},
      {{"simulate", "1f1b", "--scale", "fast"}, "--scale fast: give STAGE=FACTOR"},
      {{"simulate", "1f1b", "--scale", " 2=2"}, "--scale  2=2: give STAGE=FACTOR"},
      {{"simulate", "1f1b", "--scale", "2=0x2"}, "--scale 2=0x2: give STAGE=FACTOR"},
      {{"simulate", "1f1b", "--scale", "4=2"}, "stages 0 to 3"},
      {{"simulate", "1f1b", "--bandwidth", "0"}, "--bandwidth"},
      {{"simulate", "1f1b", "--bandwidth", "nan", "--bytes", "1"}, "--bandwidth is not a number"},
      {{"simulate", "1f1b", "--bandwidth", "5"}, "--bandwidth requires --bytes"},
      {{"simulate", "1f1b", "--scale", "W=0"}, "--scale W=0: 1f1b has no W; its actions are F, B"},
      {{"simulate", "1f1b", "--overlap", "nan"}, "--overlap is not a number"},
      {{"simulate", "1f1b", "--tf", "1e308"}, "more than a number can hold"},
      {{"simulate", "hanayo", "--tf", "1e308"}, "schedule hanayo: its times add up to more than a number can hold"},
      {{"simulate", "ZB-Auto", "--tf", "1,2,1,2"}, "is generated for equal stages"},
      {{"simulate", "1f1b", "--buffers", "-1"}, "--buffers"},
      {{"simulate", "1f1b", "--svg", "nowhere/p.svg"}, "nowhere/p.svg"},
      {{"simulate", "zc-*"}, "no schedule matches 'zc-*'"},
      {{"simulate", "1f1b,nonesuch"}, "no schedule matches 'nonesuch'"},
      {{"simulate", "zb-h*", "--svg", "p.svg"}, "are for one schedule; zb-h* matches zb-h1, zb-h2"},
      {{"simulate", "zb-h*", "--scale", "W=0"}, "are for one schedule"},
      {{"simulate", "zb-h*", "--tw", "1,2,3,4"}, "--tw has 4 values; to compare schedules give one"},
      {{"simulate", "zb-h*", "--tf", "0"}, "a forward takes 0"},
      {{"simulate", "zb-h*", "--group-size", "2"}, "group size"},
      {{"schedule", "1f1b", "--skip", "3-1"}, "schedule: --skip 3-1: a skip goes from a stage to a later one"},
      {{"schedule", "1f1b", "--skip", "1-1"}, "TO must be above FROM"},
      {{"schedule", "1f1b", "--skip", "0-4"}, "schedule: --skip 0-4: expected stages 0 to 3"},
      {{"schedule", "1f1b", "--skip", "0-3,1-2,0-3"}, "--skip 0-3: from 0 to 3 is given twice"},
      {{"schedule", "1f1b", "--skip", "0-3", "--skip", "0-3"}, "is given twice"},
      {{"schedule", "1f1b", "--skip", "0-3=2"}, "--skip 0-3=2: the order does not depend on bytes"},
      {{"schedule", "1f1b", "--skip", "0>3"}, "--skip 0>3: give FROM-TO or FROM-TO=BYTES, as in 0-3"},
      {{"schedule", "1f1b", "--skip", ""}, "--skip"},
      {{"simulate", "1f1b", "--skip", "0-3="}, "--skip 0-3=: give FROM-TO"},
      {{"simulate", "1f1b", "--skip", "0-3=-2"}, "--skip 0-3=-2: give FROM-TO"},
      {{"simulate", "1f1b", "--skip", "0-3=nan"}, "--skip 0-3=nan: give FROM-TO"},
      {{"simulate", "1f1b", "--skip", "0-3=2MB"}, "--skip 0-3=2MB: give FROM-TO"},
      {{"simulate", "1f1b", "--skip", "0-99999999999"}, "give FROM-TO"},
      {{"simulate", "1f1b", "--skip", "0-3=2,0-3=1"}, "is given twice; give it once, with the bytes of both"},
      {{"simulate", "1f1b", "--skip", "0-3=1e308", "--tf", "1"}, "more than a number can hold"},
      {{"simulate", "zb-h*", "--skip", "0-4"}, "--skip 0-4: expected parts of the model, one per rank, 0 to 3"},
  };
  expect_refused(inputs);
}

TEST_F(ScheduleCli, ListsAllKinds) {
  const conformance::ProcessResult result = start({"schedule", "--list"});
  EXPECT_EQ(exit_code(result), 0);
  for (const char* text :
       {"\n1f1b\n", "zb-h1\n", "placement: stage s on rank s", "constraints: ", "arXiv 2401.10241"}) {
    EXPECT_TRUE(has(result, text)) << text;
  }
  std::istringstream lines(result.output);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 82u) << line;
}

TEST_F(ScheduleCli, TheGridShowsTime) {
  const conformance::ProcessResult grid = start({"schedule", "1f1b", "--ranks", "2", "--microbatches", "2"});
  EXPECT_EQ(grid.output,
            "slot    0   1   2   3   4   5   6   7   8\n"
            "rank 0  0F0 0F1 .   .   0B0 =   .   0B1 =\n"
            "rank 1  .   1F0 1B0 =   1F1 1B1 =   .   .\n"
            "\n2F0: forward of stage 2 for micro-batch 0, a slot; B: backward, two slots; .: bubble\n");
  const conformance::ProcessResult wide = start({"schedule", "gpipe", "--ranks", "4", "--microbatches", "64"});
  std::istringstream lines(wide.output);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 120u);
  const conformance::ProcessResult huge = start({"schedule", "gpipe", "--ranks", "64", "--microbatches", "512"});
  EXPECT_TRUE(has(huge, "are not shown)")) << huge.output.substr(huge.output.size() - 400);
}

TEST_F(ScheduleCli, FormsOfAFile) {
  const conformance::ProcessResult lowered =
      start({"schedule", "zb-h1", "--ranks", "2", "--microbatches", "2", "--format", "comms"});
  const conformance::ProcessResult compute =
      start({"schedule", "zb-h1", "--ranks", "2", "--microbatches", "2", "--format", "compute"});
  std::ofstream(folder_ / "lowered.csv") << lowered.output;
  EXPECT_EQ(start({"schedule", "lowered.csv", "--format", "comms"}).output, lowered.output) << "as it is";
  EXPECT_EQ(start({"schedule", "lowered.csv", "--format", "compute"}).output, compute.output);
  EXPECT_TRUE(has(start({"schedule", "lowered.csv"}), "--format comms prints them"));
  std::ofstream(folder_ / "old.csv") << "0F0,0B0,0W0\n";
  EXPECT_EQ(start({"schedule", "old.csv", "--dialect", "2024", "--format", "compute"}).output, "0F0,0I0,0W0\r\n");
  const conformance::ProcessResult svg = start({"schedule", "lowered.csv", "--format", "svg"});
  EXPECT_TRUE(svg.output.starts_with("<svg ") && svg.output.ends_with("</svg>\n"));
}

// The second row of what `scripts/pytorch_schedules --show Interleaved1F1B 2 2 2 comms` prints.
TEST_F(ScheduleCli, WhatPytorchWouldRun) {
  const conformance::ProcessResult result =
      start({"schedule", "interleaved-1f1b", "--ranks", "2", "--microbatches", "2", "--format", "comms"});
  EXPECT_EQ(result.output.substr(result.output.find('\n') + 1),
            "1UNSHARD,3UNSHARD,1RECV_F0,1F0,1SEND_F0,1RECV_F1,1F1,1SEND_F1,3RECV_F0,3F0,3RECV_F1,3B0,3SEND_B0,1RECV_B0,"
            "3F1,3B1,3SEND_B1,1RECV_B1,3REDUCE_GRAD,3WAIT_REDUCE_GRAD,3RESHARD,1B0,1WAIT_SEND_F0,1SEND_B0,1B1,"
            "1WAIT_SEND_F1,1SEND_B1,1REDUCE_GRAD,1WAIT_REDUCE_GRAD,1RESHARD,3WAIT_SEND_B0,3WAIT_SEND_B1,1WAIT_SEND_B0,"
            "1WAIT_SEND_B1\r\n");
}

TEST_F(ScheduleCli, ReplicasShareParametersAndGradients) {
  const std::vector<std::string> mesh = {"schedule", "gpipe",      "--ranks", "2",       "--microbatches",
                                         "1",        "--replicas", "2",       "--shard", "--format",
                                         "comms",    "--lowering", "engine"};
  EXPECT_EQ(start(mesh).output,
            "0UNSHARD,0F0,0SEND_F0,0RECV_B0,0B0,0REDUCE_GRAD,0RESHARD,0WAIT_REDUCE_GRAD\r\n"
            "1RECV_F0,1UNSHARD,1F0,1B0,1SEND_B0,1REDUCE_GRAD,1RESHARD,1WAIT_REDUCE_GRAD\r\n"
            "0UNSHARD,0F1,0SEND_F1,0RECV_B1,0B1,0REDUCE_GRAD,0RESHARD,0WAIT_REDUCE_GRAD\r\n"
            "1RECV_F1,1UNSHARD,1F1,1B1,1SEND_B1,1REDUCE_GRAD,1RESHARD,1WAIT_REDUCE_GRAD\r\n");
  const conformance::ProcessResult check = start({"schedule", "dualpipe", "--replicas", "2", "--shard", "--check"});
  EXPECT_EQ(exit_code(check), 0) << check.output;
  // 0F 1, 1F 1, 1B 2, 0B 2, and 5 until the gradients of stage 0 are summed.
  const conformance::ProcessResult simulated =
      start({"simulate", "gpipe", "--ranks", "2", "--microbatches", "1", "--replicas", "2", "--reduce", "5"});
  EXPECT_TRUE(has(simulated, "11")) << simulated.output;
  EXPECT_TRUE(has(simulated, "5 of gathered parameters and summed gradients")) << simulated.output;
  expect_refused({{{"schedule", "gpipe", "--shard"}, "--shard goes with --replicas 2 or more"}});
}

TEST_F(ScheduleCli, CheckSaysWhatWasProvenOrIsBroken) {
  const conformance::ProcessResult good = start({"schedule", "1f1b", "--ranks", "4", "--microbatches", "8", "--check"});
  EXPECT_EQ(exit_code(good), 0) << good.output;
  for (const char* text :
       {"every action once: 64 computations of 4 stages", "dependencies", "each of 48 sends", "rendezvous",
        "blocking sends: runs with ", "channel order", "activations held at once, by rank: 4 3 2 1\n"}) {
    EXPECT_TRUE(has(good, text)) << text << "\n" << good.output;
  }
  std::ofstream(folder_ / "stuck.csv") << "0F0,0B0,0F1,0B1\n1F0,1F1,1B0,1B1\n";
  const conformance::ProcessResult stuck = start({"schedule", "stuck.csv", "--check"});
  EXPECT_EQ(exit_code(stuck), 1);
  EXPECT_TRUE(has(stuck, "broken  deadlock")) << stuck.output;
  std::ofstream(folder_ / "lacking.csv") << "0F0,0F1,0B0\n1F0,1B0,1F1,1B1\n";
  const conformance::ProcessResult lacking = start({"schedule", "lacking.csv", "--check"});
  EXPECT_EQ(exit_code(lacking), 1);
  EXPECT_TRUE(has(lacking, "broken  ")) << lacking.output;
  EXPECT_EQ(exit_code(start({"schedule", "forward-only", "--check"})), 0);
  std::ofstream(folder_ / "gathered.csv") << "0UNSHARD,0F0,0B0,0RESHARD\n1F0,1B0\n";
  EXPECT_EQ(exit_code(start({"schedule", "gathered.csv", "--check"})), 0) << "transfers are added";
  std::ofstream(folder_ / "half.csv") << "0F0,0RECV_B0,0B0\n1F0,1B0,1SEND_B0\n";
  const conformance::ProcessResult half_lowered = start({"schedule", "half.csv", "--check"});
  EXPECT_EQ(exit_code(half_lowered), 1);
  EXPECT_TRUE(has(half_lowered, "0SEND_F0 on rank 0 and its partner 1RECV_F0 on rank 1 are missing"));
}

// The first row of the zero-bubble paper's table of bubbles (arXiv 2401.10241).
TEST_F(ScheduleCli, SimulateAsJson) {
  const std::vector<std::string> times = {"--tf", "18.522", "--tb", "18.086", "--tw", "9.337", "--comm", "0.601"};
  const auto simulate = [&](const std::string& name, std::vector<std::string> more) {
    std::vector<std::string> words = {"simulate", name, "--ranks", "8", "--microbatches", "24", "--json"};
    words.insert(words.end(), times.begin(), times.end());
    words.insert(words.end(), more.begin(), more.end());
    const conformance::ProcessResult result = start(words);
    EXPECT_EQ(exit_code(result), 0) << result.output;
    return nlohmann::json::parse(result.output);
  };
  EXPECT_NEAR(simulate("1f1b", {}).at("bubble_longest_rank").get<double>(), 0.2431, 5e-5);
  EXPECT_NEAR(simulate("zb-h1", {}).at("bubble_longest_rank").get<double>(), 0.1585, 5e-5);
  const nlohmann::json h2 = simulate("zb-h2", {"--scale", "7=2", "--scale", "W=0.5"});
  EXPECT_NEAR(h2.at("bubble_longest_rank").get<double>(), 0.1083, 5e-5);
  EXPECT_EQ(h2.at("peak"), std::vector<int>(8, 15));
  EXPECT_EQ(h2.at("busy").size(), 8u);
  EXPECT_LE(h2.at("lower_bound").get<double>(), h2.at("makespan").get<double>());
  double length = 0;
  for (const auto& step : h2.at("critical_path"))
    length += step.at("end").get<double>() - step.at("begin").get<double>();
  EXPECT_NEAR(length, h2.at("makespan").get<double>(), 1e-6);
  EXPECT_EQ(h2.at("scaled").size(), 2u);
  EXPECT_GT(h2.at("scaled")[0].at("change").get<double>(), 0);
  EXPECT_LT(h2.at("scaled")[1].at("change").get<double>(), 0);
}

TEST_F(ScheduleCli, OrdersMadeToMeasureAreMadeForTheMemoryThatIsSimulated) {
  for (const char* share : {"", "0.25", "1"}) {
    std::vector<std::string> words = {"simulate", "zb-auto", "--ranks",        "4", "--microbatches",
                                      "12",       "--json",  "--memory-limit", "6"};
    if (*share != 0) words.insert(words.end(), {"--weight-share", share});
    const conformance::ProcessResult result = start(words);
    ASSERT_EQ(exit_code(result), 0) << result.output;
    const nlohmann::json json = nlohmann::json::parse(result.output);
    EXPECT_EQ(json.at("peak_memory").size(), 4u);
    for (const auto& peak : json.at("peak_memory")) EXPECT_LE(peak.get<double>(), 6) << "share " << share;
  }
}

// Each row equals the simulation of that schedule alone, with a stage's share of the rank's times and activations.
TEST_F(ScheduleCli, SeveralSchedulesInATable) {
  std::ofstream(folder_ / "mine.csv") << "0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n";
  const auto simulate = [&](const std::string& name, double stages_per_rank, std::vector<std::string> more = {}) {
    std::vector<std::string> words = {"simulate", name, "--json", "--comm", "0.5"};
    for (const char* time : {"--tf", "--tb", "--tw", "--activation"})
      words.insert(words.end(), {time, std::to_string(12 / stages_per_rank)});
    words.insert(words.end(), more.begin(), more.end());
    const conformance::ProcessResult result = start(words);
    EXPECT_EQ(exit_code(result), 0) << result.output;
    return nlohmann::json::parse(result.output);
  };
  const nlohmann::json all = simulate("zb-v,mine.csv,1f1b,zb-a*,dualpipe,interleaved-1f1b,zb-v", 1,
                                      {"--stages-per-rank", "4", "--memory-limit", "8", "--microbatches", "7"});
  ASSERT_EQ(all.size(), 6u) << all;
  struct Row {
    std::string name;
    double stages_per_rank;
    std::vector<std::string> options;
  };
  const std::vector<std::string> share = {"--weight-share", "0.5", "--microbatches", "7"};
  const Row rows[] = {{"1f1b", 1, share}, {"interleaved-1f1b", 4, share}, {"zb-auto", 1, share}, {"zb-v", 2, share}};
  for (std::size_t i = 0; i < std::size(rows); ++i) {
    Row row = rows[i];
    if (row.name == "interleaved-1f1b") row.options.insert(row.options.end(), {"--stages-per-rank", "4"});
    if (row.name == "zb-auto") row.options.insert(row.options.end(), {"--memory-limit", "8"});
    const nlohmann::json alone = simulate(row.name, row.stages_per_rank, row.options);
    ASSERT_EQ(all[i].at("schedule"), row.name);
    for (const char* key :
         {"ranks", "stages", "microbatches", "makespan", "longest_rank", "bubble_makespan", "bubble_longest_rank"})
      EXPECT_EQ(all[i].at(key), alone.at(key)) << row.name << ", " << key;
    const std::vector<double> peaks = alone.at("peak_memory");
    EXPECT_EQ(all[i].at("peak_memory"), *std::max_element(peaks.begin(), peaks.end())) << row.name;
  }
  EXPECT_TRUE(all[4].contains("refused")) << all[4];  // dualpipe: an odd number of micro-batches
  EXPECT_TRUE(all[5].contains("refused")) << all[5];  // the file: it has two
  const conformance::ProcessResult text = start({"simulate", "1f1b,dualpipe,mine.csv"});
  EXPECT_EQ(exit_code(text), 0) << text.output;
  for (const char* part : {"schedule  ranks  stages  micro-batches  makespan ", "\n1f1b      4      4       8 ",
                           "27.27 %", "\nmine.csv  2      2       2 "})
    EXPECT_TRUE(has(text, part)) << part << "\n" << text.output;
}

TEST_F(ScheduleCli, SkipsAreCheckedAndLowered) {
  const std::vector<std::string> order = {"schedule", "interleaved-1f1b", "--ranks", "2", "--microbatches", "2"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), order.begin(), order.end());
    const conformance::ProcessResult result = start(more);
    EXPECT_EQ(exit_code(result), 0) << result.output;
    return result.output;
  };
  EXPECT_TRUE(with({"--skip", "0-3,1-2", "--check"}).find("between ranks, 2 skips included\n") != std::string::npos);
  EXPECT_TRUE(with({"--check"}).find("between ranks\n") != std::string::npos);
  EXPECT_EQ(with({"--skip", "0-3"}), with({})) << "in the grid nothing takes time to travel";
  // Stages 0 and 2 are on one rank, as are 1 and 3: a skip between them needs no transfer.
  for (const char* lowering : {"pytorch", "engine"}) {
    const std::string chain = with({"--format", "comms", "--lowering", lowering});
    EXPECT_EQ(with({"--format", "comms", "--lowering", lowering, "--skip", "0-2,1-3"}), chain);
  }
  // Only 1 and 2 are neighbours on different ranks; 0 sends to 3 directly.
  std::ofstream(folder_ / "mine.csv") << "0F0,1F0,1B0,0B0\n2F0,3F0,3B0,2B0\n";
  const conformance::ProcessResult lowered =
      start({"schedule", "mine.csv", "--skip", "0-3", "--format", "comms", "--lowering", "engine"});
  EXPECT_EQ(lowered.output,
            "0F0,0SEND_F0,1F0,1SEND_F0,1RECV_B0,0RECV_B0,1B0,0B0\r\n"
            "2RECV_F0,3RECV_F0,2F0,3F0,3B0,3SEND_B0,2B0,2SEND_B0\r\n");
  std::ofstream(folder_ / "lowered.csv") << lowered.output;
  const conformance::ProcessResult good = start({"schedule", "lowered.csv", "--skip", "0-3", "--check"});
  EXPECT_EQ(exit_code(good), 0) << good.output;
  EXPECT_TRUE(has(good, "each of 4 sends")) << good.output;
  const conformance::ProcessResult chain_only = start({"schedule", "lowered.csv", "--check"});
  EXPECT_EQ(exit_code(chain_only), 1);
  EXPECT_TRUE(has(chain_only, "0SEND_F0")) << chain_only.output;
}

TEST_F(ScheduleCli, SkipsAreSimulated) {
  const auto simulate = [&](const std::string& name, std::vector<std::string> more) {
    std::vector<std::string> words = {"simulate", name, "--json"};
    words.insert(words.end(), more.begin(), more.end());
    const conformance::ProcessResult result = start(words);
    EXPECT_EQ(exit_code(result), 0) << result.output;
    return nlohmann::json::parse(result.output);
  };
  const std::vector<std::string> links = {"--bytes", "1", "--bandwidth", "2"};
  const auto skipping = [&](const std::string& name, std::vector<std::string> more) {
    more.insert(more.end(), links.begin(), links.end());
    return simulate(name, more);
  };
  const nlohmann::json none = skipping("1f1b", {});
  EXPECT_FALSE(none.contains("skips"));
  const nlohmann::json both = skipping("1f1b", {"--skip", "0-3=8,1-2"});
  EXPECT_EQ(both.at("skips"), nlohmann::json::parse(R"([{"from": 0, "to": 3, "bytes": 8.0},
                                                        {"from": 1, "to": 2, "bytes": 1.0}])"))
      << "--bytes of stage 1";
  EXPECT_EQ(skipping("1f1b", {"--skip", "0-3=8", "--skip", "1-2=1"}), both);
  EXPECT_GT(both.at("makespan"), none.at("makespan"));
  EXPECT_GT(both.at("lower_bound"), none.at("lower_bound"));
  EXPECT_GE(both.at("peak_memory")[3].get<double>(), none.at("peak_memory")[3].get<double>() + 8);
  EXPECT_EQ(both.at("peak"), none.at("peak")) << "activations";
  // In a V the first stage and the last are on one rank: the skip takes memory, but no transfer.
  const nlohmann::json v = simulate("zb-v", {"--skip", "0-7=2"}), plain_v = simulate("zb-v", {});
  EXPECT_EQ(v.at("makespan"), plain_v.at("makespan"));
  EXPECT_GT(v.at("peak_memory")[0], plain_v.at("peak_memory")[0]);
  EXPECT_EQ(v.at("peak_memory")[1], plain_v.at("peak_memory")[1]);
  // In a table each schedule has the skip between the same parts of the model.
  const nlohmann::json all = skipping("1f1b,interleaved-1f1b,zb-v", {"--skip", "0-3=8", "--weight-share", "0.5"});
  const std::vector<std::pair<std::string, std::vector<std::string>>> alone = {
      {"1f1b", {"--skip", "0-3=8"}},
      {"interleaved-1f1b", {"--skip", "1-6=8", "--tf", ".5", "--tb", ".5", "--tw", ".5", "--activation", ".5"}},
      {"zb-v", {"--skip", "1-6=8", "--tf", ".5", "--tb", ".5", "--tw", ".5", "--activation", ".5"}}};
  for (std::size_t i = 0; i < alone.size(); ++i) {
    std::vector<std::string> options = alone[i].second;
    options.insert(options.end(), {"--weight-share", "0.5"});
    const nlohmann::json one = skipping(alone[i].first, options);
    ASSERT_EQ(all[i].at("schedule"), alone[i].first);
    EXPECT_EQ(all[i].at("makespan"), one.at("makespan")) << alone[i].first;
    const std::vector<double> peaks = one.at("peak_memory");
    EXPECT_EQ(all[i].at("peak_memory"), *std::max_element(peaks.begin(), peaks.end())) << alone[i].first;
  }
  const conformance::ProcessResult text = start({"simulate", "1f1b", "--skip", "0-3=2.5", "--scale", "2=2", "--trace",
                                                 "t.json", "--svg", "t.svg", "--bytes", "1", "--bandwidth", "1"});
  EXPECT_TRUE(has(text, "4 stages, 8 micro-batches; skips 0-3=2.5\n")) << text.output;
  EXPECT_TRUE(has(text, "With --scale 2=2: makespan ")) << text.output;
  // Eight micro-batches, forward and backward, over the chain's three edges and the skip's: each flow begins and ends.
  const nlohmann::json trace = nlohmann::json::parse(file_text(folder_ / "t.json"));
  const auto flows = [&](const std::string& phase) {
    return std::count_if(trace.at("traceEvents").begin(), trace.at("traceEvents").end(),
                         [&](const auto& event) { return event.at("ph") == phase; });
  };
  EXPECT_EQ(flows("s"), 8 * 2 * 4);
  EXPECT_EQ(flows("f"), 8 * 2 * 4);
  const conformance::ProcessResult table = start({"simulate", "1f1b,zb-v", "--skip", "0-3=1"});
  EXPECT_TRUE(has(table, "Skips: between parts of the model")) << table.output;
}

TEST_F(ScheduleCli, AFileNameThatIsNoUtf8) {
  const std::string name = "odd\xff.csv";
  std::ofstream(folder_ / name) << "0F0,0B0\n";
  const conformance::ProcessResult result = start({"simulate", name, "--json"});
  EXPECT_EQ(exit_code(result), 0) << result.output;
  EXPECT_EQ(nlohmann::json::parse(result.output).at("makespan"), 3);
}

TEST_F(ScheduleCli, SimulateTellsAndDraws) {
  const conformance::ProcessResult result =
      start({"simulate", "1f1b", "--ranks", "2", "--microbatches", "4", "--trace", "t.json", "--svg", "t.svg"});
  EXPECT_EQ(exit_code(result), 0) << result.output;
  for (const char* text : {"1f1b: 2 ranks, 2 stages, 4 micro-batches", "makespan      15", "longest rank  15",
                           "lower bound   15", "The step is as long as a chain of"}) {
    EXPECT_TRUE(has(result, text)) << text << "\n" << result.output;
  }
  const nlohmann::json trace = nlohmann::json::parse(file_text(folder_ / "t.json"));
  EXPECT_EQ(std::count_if(trace.at("traceEvents").begin(), trace.at("traceEvents").end(),
                          [](const auto& event) { return event.at("ph") == "X"; }),
            16);
  EXPECT_TRUE(file_text(folder_ / "t.svg").starts_with("<svg "));
  EXPECT_TRUE(has(start({"simulate", "--help"}), "tb + tw for each"));
  const conformance::ProcessResult late = start({"simulate", "--tf", "1,1,1,2", "--scale", "3=0.5", "1f1b"});
  EXPECT_EQ(exit_code(late), 0) << late.output;
  EXPECT_TRUE(has(late, "With --scale 3=0.5: makespan ")) << late.output;
}

}  // namespace
}  // namespace plumbline::cli
