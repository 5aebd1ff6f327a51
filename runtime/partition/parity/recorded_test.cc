#include "runtime/partition/parity/recorded.h"

#include <gtest/gtest.h>

#include "runtime/partition/parity/joint_graph_file.h"
#include "runtime/partition/parity/policies/policy_file.h"
#include "runtime/partition/testing/golden_files.h"
#include "runtime/partition/testing/recorded_partition.h"

namespace plumbline::partition {
namespace {

using Texts = std::vector<std::string>;

TEST(Recorded, WhatPyTorchAnsweredIsEqualToItself) {
  for (const JointGraphFile& file : golden_files())
    for (const auto& [key, run] : file.runs) {
      if (adds_nodes(run)) continue;
      const Partition partition = recorded_partition(file, run);
      EXPECT_EQ(differences(run, partition), Texts{}) << file.model << " " << key;
      EXPECT_EQ(options_of(file, run).static_inputs, run.static_inputs) << file.model << " " << key;
      // Another mode's answer is equal only if it saves the same values.
      for (const auto& [other_key, other] : file.runs)
        if (other.variant == run.variant && other.saved != run.saved) {
          EXPECT_NE(differences(other, partition), Texts{}) << key << " " << other_key;
        }
    }
}

// PyTorch writes the states of these random calls into the graphs; here only the names agree, and the executor replays
// the calls.
TEST(Recorded, RandomStatesBearPyTorchsNames) {
  const JointGraphFile& file = golden_file("checkpoint_dropout");
  int with_states = 0;
  for (const auto& [key, run] : file.runs) {
    with_states += adds_nodes(run);
    const JointGraphFile::Variant& variant = file.variants.at(run.variant);
    const Partition made =
        partition(file.graphs.at(variant.graph), load_policy(policy_name_of(variant)), options_of(file, run));
    EXPECT_EQ(differences(run, made), Texts{}) << key;
  }
  EXPECT_EQ(with_states, 64);
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
    JointGraphFile::Variant variant;
    variant.torch = torch;
    return policy_name_of(variant);
  };
  EXPECT_EQ(name("2.15.0"), "torch-2.15");
  EXPECT_EQ(name("2.11.0"), "torch-2.11");
  EXPECT_EQ(name("2.11"), "torch-2.11");
  EXPECT_EQ(name(""), "torch-2.15");
}

}  // namespace
}  // namespace plumbline::partition
