// The policy and options of the runs recorded in a joint-graph file, and the comparison of a partition with PyTorch's
// recorded answer. Does not partition anything.
#pragma once

#include <string>
#include <vector>

#include "runtime/partition/parity/joint_graph_file.h"
#include "runtime/partition/partition.h"

namespace plumbline::partition {

/// Returns the name of the policy of a variant's PyTorch version: "torch-2.15" for "2.15.0", also if the variant has no
/// version. The policy need not exist.
std::string policy_name_of(const JointGraphFile::Variant& variant);

/// Returns the options of a recorded run: its mode, and Variant::params as static inputs if Run::statics is "params".
/// Throws InputError for an unknown mode.
PartitionOptions options_of(const JointGraphFile& file, const JointGraphFile::Run& run);

/// Compares a partition, named by answer_names(), with a recorded answer. Returns one string for each difference in
/// saved, saved_sym, fw.in, fw.ops, fw.out, bw.in, bw.ops and bw.out: "saved: lacks gelu; has mul, erf" (the partition
/// lacks gelu and has mul and erf in addition), or "order of bw.ops". Empty if all are equal.
std::vector<std::string> differences(const JointGraphFile::Run& run, const Partition& partition);

}  // namespace plumbline::partition
