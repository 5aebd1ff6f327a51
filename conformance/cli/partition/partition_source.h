// Loads the joint graphs of `plumbline partition` from a JSON file or traces one from a stage of a program.
#pragma once

#include <functional>
#include <string>

#include "conformance/program/program_split.h"
#include "runtime/partition/parity/joint_graph_file.h"

namespace plumbline::cli {

struct PartitionSource {
  std::string path;             ///< GRAPH.json, GRAPH.json.gz, or a program, M.pt2
  program::ProgramSplit split;  ///< where a program is cut; else empty
  int stage = -1;               ///< the stage of a program that is cut; -1: not given
  bool decompose = false;       ///< decompose the operators of a program's graph
};

/// Traces the joint graph of a program's stage.
using ProgramReader = std::function<partition::JointGraphFile(const PartitionSource& source)>;

/// Loads the joint graphs of a file, or those that `read_program` returns. Throws InputError for an unreadable or
/// invalid file, and options of a program for a joint graph.
partition::JointGraphFile load_joint_graphs(const PartitionSource& source, const ProgramReader& read_program);

/// The ProgramReader. The file has one variant, "own/aten", or "own/core" if decomposed; `attribute` of a primal names
/// the parameter, buffer or input that it is, and the function sets ATen's number of threads to 1. Throws InputError
/// for an unreadable or invalid program, and a missing or nonexistent stage.
partition::JointGraphFile joint_graph_of_program(const PartitionSource& source);

}  // namespace plumbline::cli
