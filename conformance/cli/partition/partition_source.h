// Loads the joint graphs of `plumbline partition` from a JSON file, or traces one from a stage of a program.
#pragma once

#include <functional>
#include <string>

#include "conformance/program/program_split.h"
#include "runtime/partition/parity/joint_graph_file.h"

namespace plumbline::cli {

struct PartitionSource {
  std::string path;             ///< GRAPH.json, GRAPH.json.gz, or a program, M.pt2
  program::ProgramSplit split;  ///< how a program is cut into stages; empty: not given
  int stage = -1;               ///< the stage to trace, from 0; -1: not given, as a program of one stage allows
  bool decompose = false;       ///< of a program: decompose the operators of the traced graph into smaller ones
};

/// Reads the program at PartitionSource::path and returns the joint graph of one of its stages:
/// joint_graph_of_program() or a substitute.
using ProgramReader = std::function<partition::JointGraphFile(const PartitionSource& source)>;

/// Returns the result of `read_program` for a path that ends in ".pt2", otherwise the joint graphs of the file. Throws
/// InputError for an unreadable or invalid file, and if options of a program are given for a file of joint graphs.
partition::JointGraphFile load_joint_graphs(const PartitionSource& source, const ProgramReader& read_program);

/// The ProgramReader of the command. The result has one variant, "own/aten", or "own/core" if decomposed;
/// JointNode::attribute of a primal is the name of the parameter, buffer or input that it stands for. Side effect:
/// calls at::set_num_threads(1), which holds for the process from then on. Throws InputError for an unreadable or
/// invalid program, for a stage that does not exist, and if no stage is given for a program of several.
partition::JointGraphFile joint_graph_of_program(const PartitionSource& source);

}  // namespace plumbline::cli
