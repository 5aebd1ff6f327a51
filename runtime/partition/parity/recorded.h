// Answers the runs that a joint-graph file records, and compares the answers with PyTorch's.
#pragma once

#include <string>
#include <vector>

#include "runtime/partition/parity/joint_graph_file.h"
#include "runtime/partition/partition.h"

namespace plumbline::partition {

/// The policy of the PyTorch version that made a variant: "torch-2.15" for "2.15.0", and if it names no version.
std::string policy_name_of(const JointGraphFile::Variant& variant);

/// The options of a recorded run. Throws InputError for an unknown mode.
PartitionOptions options_of(const JointGraphFile& file, const JointGraphFile::Run& run);

/// The differences between a partition and a recorded answer, one string for each of saved, saved_sym, fw.in, fw.ops,
/// fw.out, bw.in, bw.ops and bw.out: "saved: lacks gelu; has mul, erf", or "order of bw.ops". Empty if all are equal,
/// by the names of answer_names.h.
std::vector<std::string> differences(const JointGraphFile::Run& run, const Partition& partition);

}  // namespace plumbline::partition
