// Where `plumbline partition` takes joint graphs from: a file in their JSON form, or a stage of a program.
#pragma once

#include <string>

#include "conformance/program/options.h"
#include "runtime/partition/parity/joint_graph_file.h"

namespace plumbline::cli {

struct PartitionSource {
  std::string path;             ///< GRAPH.json, GRAPH.json.gz or M.pt2
  program::ProgramSplit split;  ///< of a program: where it is cut
  int stage = -1;               ///< of a program that is cut: which stage
  bool decompose = false;
};

/// A program gives one variant, "own/aten", or "own/core" where it is decomposed. Its primals say in `attribute` which
/// parameter, buffer or input they are. Throws InputError.
partition::JointGraphFile load_joint_graphs(const PartitionSource& source);

}  // namespace plumbline::cli
