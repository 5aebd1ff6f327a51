// Handmade recordings (sample_recording.h) with faults at known places.
#include "conformance/recording/against.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>

#include "conformance/recording/testing/sample_recording.h"
#include "runtime/error.h"
#include "runtime/io/temporary_folder.h"
#include "runtime/io/write_file.h"
#include "runtime/testing/refusal.h"

namespace plumbline::conformance {
namespace {

namespace fs = std::filesystem;
using namespace sample;

class Against : public ::testing::Test {
 protected:
  AgainstVerdict hold(const Made& run, const Made& one = made(false)) {
    return hold_against(read_recording(write(folder_ / "run", run)), read_recording(write(folder_ / "one", one)));
  }
  const TemporaryFolder folder_;
};

/// Parameters 4 x (forward, grad, buffer), and for each micro-batch a loss and 5 values of each module.
constexpr int kValues = 4 * 3 + kMicrobatches * (1 + 4 * 5);

TEST_F(Against, StagesAndRanksAreIgnored) {
  const AgainstVerdict verdict = hold(made(true));
  EXPECT_TRUE(verdict.agrees());
  EXPECT_EQ(verdict.equal, kValues);
  EXPECT_EQ(verdict.elements, 2 * kValues - kMicrobatches);  // a loss is one number
  EXPECT_EQ(verdict.kinds.size(), 5u);
  EXPECT_TRUE(verdict.notes.empty()) << verdict.notes.front();
  EXPECT_EQ(report_text(verdict), "PASS: " + std::to_string(kValues) + " values in 1 step agree, " +
                                      std::to_string(kValues) + " bit for bit\n");
}

TEST_F(Against, NamesTheFirstPlaceThatDiffers) {
  struct Fault {
    std::function<void(Made&)> plant;
    std::string direction, key, where;
    int left_out = 0;
  };
  const auto change = [](Made& run, const std::string& key) { element(run.at(key), 0) += 1; };
  const auto drop = [](Made& run, const std::string& key) { run.holder(key).erase(key); };
  const std::vector<Fault> faults = {
      {[&](Made& run) { change(run, "0/forward/0/1/embed:in"); }, "forward", "0/forward/0/1/embed:in", "the same data"},
      {[&](Made& run) { change(run, "0/forward/0/0/layers.0.weight"); }, "forward", "0/forward/0/0/layers.0.weight",
       "do not start with the same parameters"},
      {[&](Made& run) {
         for (const char* late : {"0/forward/1/2/head:in", "0/forward/1/2/layers.1:out", "0/forward/1/2/head:out"})
           change(run, late);
         change(run, "0/loss/-/2/loss");
         change(run, "0/backward/1/0/head:out");
       },
       "forward", "0/forward/1/2/layers.1:out", "look at the forward of `layers.1`"},
      {[&](Made& run) {
         for (const char* late : {"0/forward/1/1/layers.1:in", "0/forward/1/1/layers.1:out"}) change(run, late);
       },
       "forward", "0/forward/1/1/layers.1:in",
       "`layers.0:out` (stage 0) just before it agrees: look at the code between the two, on the way from stage 0 to "
       "stage 1"},
      {[&](Made& run) { drop(run, "0/forward/1/2/layers.1:in"); }, "forward", "0/forward/-/2/layers.1:in",
       "`layers.0:out`"},
      {[&](Made& run) {
         drop(run, "0/loss/-/1/loss");
         change(run, "0/grad/1/-/head.weight");
       },
       "loss", "0/loss/-/1/loss", "the loss function"},
      {[&](Made& run) { change(run, "0/backward/1/2/head:out"); }, "backward", "0/backward/1/2/head:out",
       "between `head` and the loss"},
      {[&](Made& run) {
         for (const char* late : {"0/backward/0/1/embed:in", "0/backward/0/1/layers.0:out", "0/backward/0/1/embed:out"})
           change(run, late);
       },
       "backward", "0/backward/0/1/layers.0:out",
       "`layers.1:in` (stage 1) just before it agrees: look at the code between the two, on the way from stage 1 to "
       "stage 0"},
      {[&](Made& run) { change(run, "0/backward/1/0/layers.1:in"); }, "backward", "0/backward/1/0/layers.1:in",
       "look at the backward of `layers.1`"},
      {[&](Made& run) {
         change(run, "0/backward/0/2/layers.0.weight");
         change(run, "0/grad/0/-/layers.0.weight");
       },
       "backward", "0/backward/0/2/layers.0.weight", "the backward of `layers.0`, its weights"},
      {[&](Made& run) {  // a detach: nothing comes back to stage 0, for any micro-batch
         for (const std::string mb : {"0", "1", "2"})
           for (const std::string name : {"layers.0", "embed"})
             for (const std::string what : {":in", ".weight", ":out"})
               drop(run, "0/backward/0/" + mb + "/" + name + what);
         for (const std::string name : {"layers.0", "embed"}) drop(run, "0/grad/0/-/" + name + ".weight");
       },
       "backward", "0/backward/-/0/layers.0:out", "`layers.1:in` (stage 1) just before it agrees", 6},
      {[&](Made& run) { drop(run, "0/backward/0/1/embed.weight"); }, "backward", "0/backward/-/1/embed.weight",
       "backward of `embed`"},
      {[&](Made& run) { change(run, "0/grad/0/-/embed.weight"); }, "accumulation", "0/grad/0/-/embed.weight",
       "the contribution of each micro-batch agrees"},
      {[&](Made& run) { change(run, "0/buffer/1/-/head.count"); }, "buffers", "0/buffer/1/-/head.count",
       "an extra or a missing update"},
  };
  for (const Fault& fault : faults) {
    Made run = made(true);
    fault.plant(run);
    const AgainstVerdict verdict = hold(run);
    ASSERT_TRUE(verdict.first) << fault.key;
    EXPECT_FALSE(verdict.agrees());
    EXPECT_EQ(to_string(verdict.first->key), fault.key);
    EXPECT_EQ(verdict.direction, fault.direction) << fault.key;
    EXPECT_NE(verdict.where.find(fault.where), std::string::npos) << fault.key << ": " << verdict.where;
    EXPECT_EQ(verdict.compared(), kValues - fault.left_out) << fault.key;
  }
}

TEST_F(Against, ReportNamesTheValueThePlaceAndTheSize) {
  Made run = made(true);
  HostTensor& gradient = run.at("0/grad/1/-/head.weight");  // 72, 72.5
  element(gradient, 0) *= 2;
  element(gradient, 1) *= 2;
  EXPECT_EQ(
      report_text(hold(run)),
      "FIRST DIFFERENCE (accumulation): step 0, stage 1: gradient `head.weight` f32[2] differs in 2 of 2 elements; "
      "first at [0]: expected 72, got 144, 8.389e+06 ulp apart; its norm is 2 times the expected one\n"
      "  the contribution of each micro-batch agrees: their sum, its scaling or a later change of it is "
      "wrong\n"
      "  0 more values differ in this step, mostly for this reason; " +
          std::to_string(kValues) + " were compared\n");
}

TEST_F(Against, OrderOfASumMayDifferAndNothingElse) {
  // 2^24 + 1 + 1 in float32: 2^24 from the left, 2^24 + 2 from the right. The bound is 2 gamma(4) (2^24 + 2), just
  // above 8.
  const auto with = [](bool pipelined, float sum) {
    Made all = made(pipelined);
    const std::string stage = pipelined ? "0" : "-";
    for (int mb = 0; mb < kMicrobatches; ++mb)
      element(all.at("0/backward/" + stage + "/" + std::to_string(mb) + "/embed.weight"), 0) = mb == 0 ? 0x1p24f : 1.0f;
    element(all.at("0/grad/" + stage + "/-/embed.weight"), 0) = sum;
    return all;
  };
  AgainstVerdict verdict = hold(with(true, 0x1p24f + 2), with(false, 0x1p24f));
  EXPECT_TRUE(verdict.agrees());
  EXPECT_EQ(verdict.reordered, 1);
  EXPECT_EQ(verdict.equal, kValues - 1);
  verdict = hold(with(true, 0x1p24f + 10), with(false, 0x1p24f));
  ASSERT_TRUE(verdict.first);
  EXPECT_EQ(verdict.direction, "accumulation");
  // The order cannot explain the same gap if a contribution differs or is missing.
  Made run = with(true, 0x1p24f + 2);
  for (int mb = 0; mb < kMicrobatches; ++mb)
    run.ranks[0].tensors.erase("0/backward/0/" + std::to_string(mb) + "/embed.weight");
  verdict = hold(run, with(false, 0x1p24f));
  ASSERT_TRUE(verdict.first);
  EXPECT_NE(verdict.where.find("were not recorded by both runs"), std::string::npos);
}

TEST_F(Against, PerturbedRunsBoundTheRounding) {
  const std::string in_one = "0/backward/-/1/layers.1:in", in_run = "0/backward/1/1/layers.1:in";
  Made one = made(false);
  element(one.at(in_one), 0) = 100;
  element(one.at(in_one), 1) = 0;
  write(folder_ / "one", one);
  for (int seed = 0; seed < 2; ++seed) write(folder_ / "one" / ("perturbed-" + std::to_string(seed)), one);
  // Moved by 0.25, 0.5 and -0.5 in the first element alone: largest 0.5; n = 2, N = 3, the squares sum to 0.5625, so
  // 1/2 sqrt(0.5625 / 6) = 0.153; bounds 5 and 1.53, of the norm 10 sqrt(0.5625 / 3) = 4.33.
  int seed = 3;
  for (const float moved : {0.25f, 0.5f, -0.5f}) {
    Made perturbed = one;
    element(perturbed.at(in_one), 0) += moved;
    write(folder_ / "one" / ("perturbed-" + std::to_string(seed++)), perturbed);
  }
  Made run = made(true);
  element(run.at(in_run), 0) = 101;
  element(run.at(in_run), 1) = 0;
  fs::remove_all(folder_ / "one" / "perturbed-4");
  fs::remove_all(folder_ / "one" / "perturbed-5");
  fs::remove_all(folder_ / "one" / "perturbed-1");
  EXPECT_THROW(hold(run, one), InputError);  // two are too few
  for (const float moved : {0.5f, -0.5f}) {
    Made perturbed = one;
    element(perturbed.at(in_one), 0) += moved;
    write(folder_ / "one" / ("perturbed-" + std::to_string(moved)), perturbed);
  }
  fs::remove_all(folder_ / "one" / "perturbed-0");
  AgainstVerdict verdict = hold(run, one);
  EXPECT_TRUE(verdict.agrees());
  EXPECT_EQ(verdict.rounded, 1);
  EXPECT_EQ(verdict.perturbed_runs, 3);
  EXPECT_NEAR(verdict.largest_ratio, 0.2, 1e-6);
  EXPECT_FALSE(hold_against(read_recording(folder_ / "run"), read_recording(folder_ / "one"), false).agrees());

  for (const auto& [first, second, within] :
       {std::tuple{104.25f, 0.0f, true}, {104.5f, 0.0f, false}, {100.0f, 1.5f, true}, {100.0f, 1.6f, false}}) {
    element(run.at(in_run), 0) = first;
    element(run.at(in_run), 1) = second;
    verdict = hold(run, one);
    EXPECT_EQ(verdict.agrees(), within) << first << " " << second;
    if (!within) {
      EXPECT_EQ(to_string(verdict.first->key), in_run);
    }
  }
  // Of other data, it would allow anything.
  for (const float moved : {-100.0f, 1e30f}) {
    Made other = one;
    element(other.at(in_one), 0) += moved;
    write(folder_ / "one" / "perturbed-other", other);
    element(run.at(in_run), 0) = 700;
    EXPECT_NE(testing::refusal([&] { hold(run, one); }).find("perturbed-other: its backward values are not near"),
              std::string::npos);
  }
  fs::remove_all(folder_ / "one" / "perturbed-other");
  // An element that no perturbed run moved may differ by one rounding only.
  element(run.at(in_run), 0) = 100;
  element(run.at(in_run), 1) = 0;
  element(run.at("0/forward/0/0/embed:in"), 1) = 0.501f;
  EXPECT_EQ(hold(run, one).direction, "forward");
}

/// Targets from a shuffle without a seed, for one: the forward is the same and outweighs everything else.
TEST_F(Against, APerturbedRunWithOtherGradientsIsRefused) {
  const auto times = [](Made all, const std::string& kind, float factor) {
    for (auto& rank : all.ranks)
      for (auto& [key, tensor] : rank.tensors)
        if (key.starts_with("0/" + kind + "/"))
          for (size_t i = 0; i < 2; ++i) element(tensor, i) *= factor;
    return all;
  };
  const auto perturbed_by = [&](const Made& one) {
    for (int seed = 0; seed < 3; ++seed) write(folder_ / "one" / ("perturbed-" + std::to_string(seed)), one);
  };
  const Made one = times(made(false), "forward", 1e4f), run = times(times(made(true), "forward", 1e4f), "grad", 2);
  perturbed_by(one);
  EXPECT_EQ(hold(run, one).direction, "accumulation");
  for (const auto& [kind, group] : {std::pair("grad", "gradients"), std::pair("backward", "backward values")}) {
    perturbed_by(times(one, kind, -1));
    testing::expect_line(
        testing::refusal([&] { hold(run, one); }), (folder_ / "one" / "perturbed-0").string(),
        std::string("its ") + group + " are not near those of the unperturbed run; a perturbed run is the same script");
  }
}

/// Left from an earlier script, for one: the same values, but recorded otherwise.
TEST_F(Against, APerturbedRunThatWasRecordedOtherwiseIsRefused) {
  const Made one = made(false);
  Made run = made(true);
  element(run.at("0/grad/1/-/head.weight"), 0) *= 2;
  const auto perturbed = [&](int seed) { return folder_ / "one" / ("perturbed-" + std::to_string(seed)); };
  for (int seed = 0; seed < 3; ++seed) write(perturbed(seed), one);
  EXPECT_EQ(hold(run, one).direction, "accumulation");
  const std::map<std::string, nlohmann::json> others = {{"loss_scale", 0.25},
                                                        {"microbatches", kMicrobatches + 1},
                                                        {"parameters", nlohmann::json::array({"embed.weight"})},
                                                        {"perturb", nullptr},
                                                        {"whole_batch", true}};
  for (const auto& [key, value] : others) {
    Made other = one;
    other.index[key] = value;
    write(perturbed(1), other);
    const std::string where = perturbed(1).string() + ": does not fit " + (folder_ / "one").string();
    testing::expect_line(testing::refusal([&] { hold(run, one); }), where + " at `" + key + "`",
                         "a perturbed run is the same script with another `perturb`");
  }
  write(perturbed(1), run);
  testing::expect_line(testing::refusal([&] { hold(run, one); }), perturbed(1).string(), " at `ranks`");
}

TEST_F(Against, CopiesThatWereNotAddedUpAreReported) {
  // `head.weight` tied to `embed.weight`: each stage has a part of the gradient, and the parts were not added.
  Made run = made(true);
  const HostTensor whole = run.at("0/grad/0/-/embed.weight");
  HostTensor &first = run.at("0/grad/0/-/embed.weight"), second = whole;
  for (size_t i = 0; i < 2; ++i) {
    element(first, i) -= 3;
    element(second, i) = 3;
  }
  run.ranks[1].tensors["0/grad/1/-/embed.weight"] = second;
  const AgainstVerdict verdict = hold(run);
  ASSERT_TRUE(verdict.first);
  EXPECT_NE(verdict.where.find("they were not added up"), std::string::npos) << verdict.where;
  first = run.ranks[1].tensors["0/grad/1/-/embed.weight"] = whole;
  EXPECT_TRUE(hold(run).agrees());
}

/// `head.weight` tied to `embed.weight`. The one-rank run has one parameter with what both add, under the first name.
TEST_F(Against, ContributionsOfCopiesAreAddedUp) {
  constexpr float kLarge = 0x1p24f;  // above it, every second whole number is a float32
  const auto set = [](HostTensor& tensor, float value) { tensor = sample::f32({value, value}); };
  const auto at = [](const std::string& stage, int mb, const std::string& name) {
    return "0/backward/" + stage + "/" + std::to_string(mb) + "/" + name + ".weight";
  };
  // Of embed 2^24, 1, 1, of head 1, 1, 1, so that the one-rank run has 2^24 (of 2^24 + 1), 2, 2, in sum 2^24 + 4.
  Made one = made(false), run = made(true);
  one.index["tied"] = {{"head.weight", "embed.weight"}};
  for (int mb = 0; mb < kMicrobatches; ++mb) {
    set(one.at(at("-", mb, "embed")), mb == 0 ? kLarge : 2.0f);
    one.ranks[0].tensors.erase(at("-", mb, "head"));
    set(run.at(at("0", mb, "embed")), mb == 0 ? kLarge : 1.0f);
    set(run.at(at("1", mb, "head")), 1);
  }
  for (const char* name : {"embed", "head"}) set(one.at("0/grad/-/-/" + std::string(name) + ".weight"), kLarge + 4);
  const auto with_sum = [&](float sum) {
    Made all = run;
    set(all.at("0/grad/0/-/embed.weight"), sum);
    set(all.at("0/grad/1/-/head.weight"), sum);
    return all;
  };
  AgainstVerdict verdict = hold(with_sum(kLarge + 4), one);
  EXPECT_TRUE(verdict.agrees()) << verdict.where;
  EXPECT_EQ(verdict.equal, kValues - kMicrobatches);
  EXPECT_TRUE(verdict.notes.empty()) << verdict.notes.front();
  // 2 gamma(7) (2^24 + 5) is just above 14; without the copies' own summands it would be 2 gamma(4) (2^24 + 4), 8.
  verdict = hold(with_sum(kLarge + 16), one);
  EXPECT_TRUE(verdict.agrees()) << verdict.where;
  EXPECT_EQ(verdict.reordered, 2);
  EXPECT_EQ(hold(with_sum(kLarge + 20), one).direction, "accumulation");
  // Two halves, not added up.
  Made apart = run;
  set(apart.at("0/grad/0/-/embed.weight"), kLarge + 2);
  set(apart.at("0/grad/1/-/head.weight"), 3);
  EXPECT_NE(hold(apart, one).where.find("they were not added up"), std::string::npos);
  // A copy's contribution that is wrong, or is missing.
  Made wrong = with_sum(kLarge + 4);
  set(wrong.at(at("1", 1, "head")), 3);
  verdict = hold(wrong, one);
  ASSERT_TRUE(verdict.first);
  EXPECT_EQ(to_string(verdict.first->key), at("-", 1, "embed"));
  EXPECT_NE(verdict.where.find("the sum over the copies of a tied parameter"), std::string::npos) << verdict.where;
  wrong.ranks[1].tensors.erase(at("1", 1, "head"));
  EXPECT_EQ(hold(wrong, one).direction, "backward");
  // Of three copies, 2^24 + 1 + 1 has two sums, 2^24 + 2 and 2^24.
  Made three = with_sum(kLarge + 4);
  set(one.at(at("-", 0, "embed")), kLarge + 2);
  three.ranks[1].tensors[at("2", 0, "embed")] = sample::f32({1, 1});
  verdict = hold(three, one);
  EXPECT_TRUE(verdict.agrees()) << verdict.where;
  EXPECT_EQ(verdict.reordered, 0);
  set(one.at(at("-", 0, "embed")), kLarge);
  verdict = hold(three, one);
  EXPECT_TRUE(verdict.agrees()) << verdict.where;
  EXPECT_EQ(verdict.reordered, 1);
}

TEST_F(Against, ValuesThatTheRunDidNotCutAreComparedWhole) {
  Made one = made(false), run = made(true);
  one.index["whole_batch"] = true;
  for (int mb = 0; mb < kMicrobatches; ++mb)
    for (const std::string kind : {"forward", "backward"}) {
      const std::string place = std::to_string(mb) + "/positions:out";
      one.ranks[0].tensors["0/" + kind + "/-/" + place] = sample::f32({static_cast<float>(mb)});
      run.ranks[0].tensors["0/" + kind + "/0/" + place] = sample::f32({0, 1, 2});
    }
  for (Made* all : {&one, &run}) all->ranks[0].order.push_back("positions:out");
  AgainstVerdict verdict = hold(run, one);
  EXPECT_TRUE(verdict.agrees()) << verdict.where;
  EXPECT_EQ(verdict.equal, kValues + kMicrobatches);
  EXPECT_EQ(verdict.notes, (std::vector<std::string>{"gradients recorded in the pipelined run but not in the one-rank "
                                                     "run: `positions:out`"}));
  element(run.at("0/forward/0/1/positions:out"), 2) = 2.5f;
  EXPECT_EQ(to_string(hold(run, one).first->key), "0/forward/0/1/positions:out");
  for (const float moved : {0.125f, -0.125f, 0.0625f}) {
    Made perturbed = one;
    element(perturbed.at("0/forward/-/2/positions:out"), 0) += moved;
    write(folder_ / "one" / ("perturbed-" + std::to_string(moved)), perturbed);
  }
  EXPECT_TRUE(hold(run, one).agrees());
}

TEST_F(Against, ValuesLeftOutAreReported) {
  Made run = made(true), one = made(false);
  for (const std::string stage : {"0", "1"})  // a container that is cut: another module in each stage
    run.ranks[stage == "0" ? 0 : 1].tensors["0/forward/" + stage + "/0/layers:in"] =
        sample::f32({stage == "0" ? 1.0f : 2.0f});
  run.ranks[0].order.push_back("layers:in");
  one.ranks[0].tensors["0/forward/-/0/layers:in"] = sample::f32({1});
  one.ranks[0].order.push_back("layers:in");
  one.ranks[0].tensors["0/forward/-/0/whole:out"] = sample::f32({1});
  one.ranks[0].order.push_back("whole:out");
  for (int mb = 0; mb < kMicrobatches; ++mb) one.ranks[0].tensors.erase("0/loss/-/" + std::to_string(mb) + "/loss");
  const AgainstVerdict verdict = hold(run, one);
  EXPECT_TRUE(verdict.agrees());
  EXPECT_EQ(verdict.equal, kValues - kMicrobatches);
  EXPECT_EQ(verdict.notes,
            (std::vector<std::string>{"only the one-rank run recorded `whole:out`",
                                      "modules split over several stages, not compared as a whole: `layers`",
                                      "losses were recorded by one run only, or for micro-batches by one run only"}));
}

TEST_F(Against, AnUnwatchedParameterIsNoPass) {
  Made run = made(true);
  std::erase_if(run.ranks[1].tensors, [](const auto& item) { return item.first.find("head") != std::string::npos; });
  std::erase_if(run.ranks[1].order, [](const std::string& name) { return name.starts_with("head"); });
  run.ranks[1].parameters = {"layers.1.weight"};
  const AgainstVerdict verdict = hold(run);
  EXPECT_FALSE(verdict.first);
  EXPECT_FALSE(verdict.agrees());
  EXPECT_EQ(verdict.unknown_parameters, (std::vector<std::string>{"head.weight"}));
  EXPECT_EQ(report_text(verdict).substr(0, 10), "INCOMPLETE");
}

TEST_F(Against, RefusesBrokenRecordingsInOneLine) {
  const auto refused = [&](const std::string& expected, const std::function<void()>& spoil) {
    fs::remove_all(folder_ / "run");
    write(folder_ / "run", made(true));
    spoil();
    testing::expect_line(testing::refusal([&] {
                           hold_against(read_recording(folder_ / "run"),
                                        read_recording(write(folder_ / "one", made(false))));
                         }),
                         "", expected);
  };
  const auto with = [&](const std::string& key, const nlohmann::json& value) {
    Made run = made(true);
    run.index[key] = value;
    write(folder_ / "run", run);
  };
  refused("no such folder", [&] { fs::remove_all(folder_ / "run"); });
  refused("it has no rank0.json", [&] { fs::remove(folder_ / "run" / "rank0.json"); });
  refused("rank1.json is missing, the run had 2 ranks", [&] { fs::remove(folder_ / "run" / "rank1.json"); });
  refused("rank1.step0.safetensors", [&] { fs::remove(folder_ / "run" / "rank1.step0.safetensors"); });
  refused("rank0.json", [&] { write_file(folder_ / "run" / "rank0.json", "{"); });
  refused("schema: expected plumbline-recorder/1", [&] { with("schema", "plumbline-recorder/9"); });
  refused("microbatches", [&] { with("microbatches", 0); });
  refused("2 micro-batches", [&] { with("microbatches", 2); });
  refused("loss_scale", [&] { with("loss_scale", 0); });
  refused("perturb: expected a number", [&] { with("perturb", "1"); });
  refused("tied: expected an object", [&] { with("tied", {"head.weight"}); });
  refused("tied.a: expected a string", [&] { with("tied", {{"a", 1}}); });
  refused("files[0]", [&] { with("files", {"../../elsewhere.safetensors"}); });
  refused("no step was recorded", [&] { with("files", nlohmann::json::array()); });
  refused("rank1.json is of another run", [&] {
    Made alone = made(false);
    write(folder_ / "run", alone);
  });
  refused("replicas of a stage are not compared", [&] {
    Made run = made(true);
    run.ranks[1].tensors["0/forward/0/0/embed:in"] = sample::f32({1});
    write(folder_ / "run", run);
  });
  refused("is not of step 0", [&] {
    Made run = made(true);
    run.ranks[0].tensors["1/forward/0/0/embed:in"] = sample::f32({1});
    write(folder_ / "run", run);
  });
}

}  // namespace
}  // namespace plumbline::conformance
