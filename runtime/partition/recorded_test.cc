#include "runtime/partition/recorded.h"

#include <gtest/gtest.h>

#include "runtime/partition/testing/golden_files.h"
#include "runtime/partition/testing/recorded_partition.h"

namespace plumbline {
namespace {

using Texts = std::vector<std::string>;

TEST(Recorded, WhatPyTorchAnsweredIsEqualToItself) {
  for (const JointGraphFile& file : golden_files())
    for (const auto& [key, run] : file.runs) {
      if (adds_nodes(run)) continue;
      const Partition partition = recorded_partition(file, run);
      EXPECT_EQ(differences(run, partition), Texts{}) << file.model << " " << key;
      EXPECT_EQ(options_of(file, run).static_inputs, run.static_inputs) << file.model << " " << key;
      // Another mode's answer is equal only where it says the same.
      for (const auto& [other_key, other] : file.runs)
        if (other.variant == run.variant && other.saved != run.saved) {
          EXPECT_NE(differences(other, partition), Texts{}) << key << " " << other_key;
        }
    }
}

TEST(Recorded, DifferencesAreNamed) {
  const JointGraphFile& file = golden_file("mlp_gelu");
  JointGraphFile::Run run = file.runs.at("2.15.0/aten/min_cut/static=none");
  const Partition partition = recorded_partition(file, run);
  ASSERT_GE(run.saved.size(), 2U);
  std::swap(run.saved[0], run.saved[1]);
  run.saved_symbols = {"s0"};
  run.backward.out[0] = std::nullopt;
  const std::string lost = run.backward.ops.back();
  run.backward.ops.back() = "other";
  run.forward.ops.pop_back();
  const std::string last = partition.graph.nodes[partition.forward.ops.back()].name;
  const std::string first_out = partition.graph.nodes[partition.backward.outputs[0]].name;
  EXPECT_EQ(differences(run, partition),
            (Texts{"order of saved", "saved_sym: lacks s0", "fw.ops: has " + last, "bw.ops: lacks other; has " + lost,
                   "bw.out: lacks null; has " + first_out}));
}

TEST(Recorded, PoliciesFollowTheVersion) {
  const auto name = [](const char* torch) {
    return policy_name_of({.torch = torch, .decompositions = "", .graph = ""});
  };
  EXPECT_EQ(name("2.15.0"), "torch-2.15");
  EXPECT_EQ(name("2.11.0"), "torch-2.11");
  EXPECT_EQ(name("2.11"), "torch-2.11");
  EXPECT_EQ(name(""), "torch-2.15");
}

}  // namespace
}  // namespace plumbline
