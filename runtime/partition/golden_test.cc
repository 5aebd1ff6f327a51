// Every recorded run of PyTorch's own partitioners (testdata/README.md), one by one: what is saved and in which order,
// both halves name by name, and the bytes.
#include <gtest/gtest.h>

#include <set>
#include <unordered_set>

#include "runtime/error.h"
#include "runtime/join.h"
#include "runtime/partition/testing/golden_files.h"
#include "runtime/partition/testing/names_of.h"

namespace plumbline {
namespace {

using testing::names_of;
using Names = std::vector<std::string>;

struct GoldenCase {
  const JointGraphFile* file;
  std::string run;
};

std::vector<GoldenCase> golden_cases() {
  std::vector<GoldenCase> cases;
  for (const JointGraphFile& file : golden_files())
    for (const auto& [key, run] : file.runs) cases.push_back({&file, key});
  return cases;
}

/// "torch-2.15" of "2.15.0/aten".
const Policy& policy_of(const std::string& variant) {
  static std::map<std::string, Policy> policies;
  const std::string name = "torch-" + variant.substr(0, variant.rfind('.'));
  if (!policies.contains(name)) policies[name] = load_policy(name);
  return policies[name];
}

/// Lines say where two lists of names first differ, and what only one of them has.
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

int64_t bytes_of(const Partition& partition) {
  int64_t bytes = 0;
  for (const NodeIndex node : partition.saved) bytes += partition.graph.nodes[node].out.bytes;
  return bytes;
}

/// Storages behind what is saved, each once, but for those of the primals.
int64_t new_storage_bytes(const Partition& partition) {
  std::set<int32_t> storages;
  for (const NodeIndex node : partition.saved) storages.insert(partition.graph.nodes[node].out.storage);
  for (const JointNode& node : partition.graph.nodes)
    if (node.kind == JointKind::Primal) storages.erase(node.out.storage);
  int64_t bytes = 0;
  for (const int32_t storage : storages) bytes += partition.graph.storage_bytes[storage];
  return bytes;
}

class Golden : public ::testing::TestWithParam<GoldenCase> {};

TEST_P(Golden, EqualsPyTorch) {
  const JointGraphFile& file = *GetParam().file;
  const JointGraphFile::Run& run = file.runs.at(GetParam().run);
  PartitionOptions options = parse_partition_mode(run.mode == "min_cut" ? "min-cut" : run.mode);
  options.static_inputs = run.static_inputs;
  const auto partitioned = [&] {
    return partition(file.graphs.at(file.variants.at(run.variant).graph), policy_of(run.variant), options);
  };
  if (run.error) {
    EXPECT_THROW(partitioned(), InputError) << *run.error;
    return;
  }
  const Partition ours = partitioned();
  const auto names = [&](const std::vector<NodeIndex>& nodes) { return names_of(ours.graph, nodes); };
  expect_same("saved", names(ours.saved), run.saved);
  expect_same("saved_sym", names(ours.saved_symbols), run.saved_symbols);
  expect_same("fw.in", names(ours.forward.inputs), run.forward.in);
  expect_same("fw.ops", names(ours.forward.ops), run.forward.ops);
  expect_same("fw.out", names(ours.forward.outputs), with_none(run.forward.out));
  expect_same("bw.in", names(ours.backward.inputs), run.backward.in);
  expect_same("bw.ops", names(ours.backward.ops), run.backward.ops);
  expect_same("bw.out", names(ours.backward.outputs), with_none(run.backward.out));
  EXPECT_EQ(bytes_of(ours), run.bytes);
  EXPECT_EQ(new_storage_bytes(ours), run.bytes_new_storage);
}

std::string name_of(const ::testing::TestParamInfo<GoldenCase>& info) {
  std::string name = info.param.file->model + "_" + info.param.run;
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return name;
}

INSTANTIATE_TEST_SUITE_P(Recorded, Golden, ::testing::ValuesIn(golden_cases()), name_of);

}  // namespace
}  // namespace plumbline
