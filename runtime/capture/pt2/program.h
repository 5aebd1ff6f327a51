// Loads programs saved by torch.export (`.pt2` archives, schema 8.x) as graphs.
//
// The graph follows the archive call for call: training IR before decompositions, with mutation. Its values carry the
// dtypes, sizes and requires_grad of the export. Shared memory and data dependence are known only after annotate()
// (runtime/capture/annotate.h) has run it; values inside the branches of a cond keep the export's facts.
//
// Everything is loaded for the CPU, even if the program was exported on another device: its tensors, the devices that
// its calls name and its autocast regions.
//
// The layout of the archives is that of PyTorch's torch/export/pt2_archive and torch/_export/serde.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "runtime/graph/graph.h"
#include "runtime/graph/output_tree.h"

namespace plumbline::capture {

struct ExportedProgram {
  /// Attributes by qualified name, in the order of registration in the model, bound to tensors; a tied one under its
  /// first name, with the others as aliases. Inputs are the program's tensor inputs, under its names; a number or None
  /// given to export is part of the program. Outputs have the numbers of the program's flat outputs; None and constants
  /// are kNoValue, a number computed from data is a tensor without dimensions.
  graph::Graph graph;
  /// The nesting; its leaves, constants included, are in the order of the program's flat outputs.
  graph::OutputTree output_tree;
  /// In the order of graph.inputs; empty if the archive holds none that can be read, for the reason in
  /// sample_inputs_error.
  std::vector<at::Tensor> sample_inputs;
  std::string sample_inputs_error;
  /// For each of graph.inputs: whether forward takes it, or its container, by keyword.
  std::vector<bool> is_keyword;
  std::string torch_version;
  std::string schema_version;  ///< "8.20"
};

/// Reads an archive and converts its program. A dimension exported as a symbol takes its size from the sample inputs.
///
/// Throws InputError, one line that begins with the file's name: not an archive of torch.export.save, damaged, or
/// truncated; another schema version; a tensor subclass or custom object; an operator without a kernel in this process,
/// a higher-order operator other than cond, no_grad and autocast regions, a functionalised program; a symbolic input
/// without a sample to take its size from. Errors about nodes give name, operator and module.
ExportedProgram read_program(const std::filesystem::path& path);

}  // namespace plumbline::capture
