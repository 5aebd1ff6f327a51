// Loads the joint graphs of `plumbline partition` from a JSON file, or traces them from a stage of a program.
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

/// A program gives one variant, "own/aten", or "own/core" if decomposed. `attribute` of a primal names its parameter,
/// buffer or input. Throws InputError.
partition::JointGraphFile load_joint_graphs(const PartitionSource& source);

}  // namespace plumbline::cli
