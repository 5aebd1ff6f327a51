// Answering the runs that a joint-graph file records, and holding the answers against PyTorch's.
#pragma once

#include <string>
#include <vector>

#include "runtime/partition/parity/joint_graph_file.h"
#include "runtime/partition/partition.h"

namespace plumbline::partition {

/// The policy that follows the version of PyTorch which made a variant: "torch-2.15" for "2.15.0", and where it names
/// no version.
std::string policy_name_of(const JointGraphFile::Variant& variant);

/// What a run asks for. Throws InputError for a mode that is not known.
PartitionOptions options_of(const JointGraphFile& file, const JointGraphFile::Run& run);

/// Where a partition differs from a recorded answer, one text for each of saved, saved_sym, fw.in, fw.ops, fw.out,
/// bw.in, bw.ops and bw.out: "saved: lacks gelu; has mul, erf", or "order of bw.ops". Empty: equal in everything, by
/// the names of answer_names.h.
std::vector<std::string> differences(const JointGraphFile::Run& run, const Partition& partition);

}  // namespace plumbline::partition
