// Checks every recorded run of PyTorch's own partitioners (testdata/README.md): the saved values and their order, both
// halves name by name, and the bytes.
#include <gtest/gtest.h>

#include <set>

#include "runtime/error.h"
#include "runtime/partition/parity/answer_names.h"
#include "runtime/partition/parity/joint_graph_file.h"
#include "runtime/partition/parity/policies/policy_file.h"
#include "runtime/partition/parity/recorded.h"
#include "runtime/partition/testing/golden_files.h"
#include "runtime/partition/testing/names_of.h"
#include "runtime/text/join.h"

namespace plumbline::partition {
namespace {

using testing::names_of;
using Names = std::vector<std::string>;

/// On failure reports where two lists of names first differ, and the names that only one of them has.
void expect_same(const std::string& what, const Names& got, const Names& want) {
  if (got == want) return;
  std::string text = what + " differs from PyTorch's:";
  const std::set<std::string> in_got(got.begin(), got.end()), in_want(want.begin(), want.end());
  Names missing, extra;
  for (const std::string& name : in_want)
    if (!in_got.contains(name)) missing.push_back(name);
  for (const std::string& name : in_got)
    if (!in_want.contains(name)) extra.push_back(name);
  if (!missing.empty()) text += "\n  missing: " + join(missing, " ");
  if (!extra.empty()) text += "\n  extra:   " + join(extra, " ");
  size_t at = 0;
  while (at < got.size() && at < want.size() && got[at] == want[at]) ++at;
  const auto from = [&](const Names& names) {
    const size_t begin = at < 3 ? 0 : at - 3, end = std::min(names.size(), at + 4);
    return join(Names(names.begin() + static_cast<std::ptrdiff_t>(std::min(begin, end)),
                      names.begin() + static_cast<std::ptrdiff_t>(end)),
                " ");
  };
  text += "\n  around position " + std::to_string(at) + " ours:      ... " + from(got);
  text += "\n  around position " + std::to_string(at) + " PyTorch's: ... " + from(want);
  ADD_FAILURE() << text;
}

Names with_none(const std::vector<std::optional<std::string>>& outputs) {
  Names names;
  for (const auto& output : outputs) names.push_back(output.value_or("None"));
  return names;
}

void expect_same(const std::string& what, const JointGraphFile::Part& got, const JointGraphFile::Part& want) {
  expect_same(what + ".in", got.in, want.in);
  expect_same(what + ".ops", got.ops, want.ops);
  expect_same(what + ".out", with_none(got.out), with_none(want.out));
}

int64_t bytes_of(const Partition& partition) {
  int64_t bytes = 0;
  for (const NodeIndex node : partition.saved) bytes += partition.graph.nodes[node].out.bytes;
  return bytes;
}

/// The bytes of the storages behind the saved values, each once, except those of the primals.
int64_t new_storage_bytes(const Partition& partition) {
  std::set<int32_t> storages;
  for (const NodeIndex node : partition.saved) storages.insert(partition.graph.nodes[node].out.storage);
  for (const JointNode& node : partition.graph.nodes)
    if (node.kind == JointKind::Primal) storages.erase(node.out.storage);
  int64_t bytes = 0;
  for (const int32_t storage : storages) bytes += partition.graph.storage_bytes[storage];
  return bytes;
}

void expect_as_recorded(const JointGraphFile& file, const JointGraphFile::Run& run) {
  const JointGraphFile::Variant& variant = file.variants.at(run.variant);
  const auto partitioned = [&] {
    return partition(file.graphs.at(variant.graph), load_policy(policy_name_of(variant)), options_of(file, run));
  };
  if (run.error) {
    EXPECT_THROW(partitioned(), InputError) << *run.error;
    return;
  }
  const Partition ours = partitioned();
  expect_same("saved", names_of(ours.graph, ours.saved), run.saved);
  expect_same("saved_sym", names_of(ours.graph, ours.saved_symbols), run.saved_symbols);
  const AnswerNames names = answer_names(ours);
  expect_same("fw", names.forward, run.forward);
  expect_same("bw", names.backward, run.backward);
  EXPECT_EQ(bytes_of(ours), run.bytes);
  EXPECT_EQ(new_storage_bytes(ours), run.bytes_new_storage);
}

/// One test per recorded model.
class GoldenPartition : public ::testing::TestWithParam<std::string> {};

TEST_P(GoldenPartition, EqualsPyTorchInEveryRun) {
  const JointGraphFile file = read_joint_graph_file(GetParam());
  EXPECT_FALSE(file.runs.empty());
  for (const auto& [key, run] : file.runs) {
    SCOPED_TRACE(file.model + " " + key);
    expect_as_recorded(file, run);
  }
}

std::string model_of(const ::testing::TestParamInfo<std::string>& info) {
  return std::filesystem::path(info.param).stem().stem().string();
}

INSTANTIATE_TEST_SUITE_P(Recorded, GoldenPartition, ::testing::ValuesIn(golden_paths()), model_of);

}  // namespace
}  // namespace plumbline::partition
