// Loads programs saved by torch.export (`.pt2` archives, schema 8.x) as graphs.
//
// The graph follows the archive call for call: training IR before decompositions, with mutation. Its values carry the
// dtypes, sizes and requires_grad of the export. Shared memory and sizes that depend on data are known only after
// annotate() (runtime/capture/annotate.h) has run the graph; values inside the branches of a cond keep the export's
// facts.
//
// Everything is loaded for the CPU, even if the program was exported on another device: tensors, devices named in calls
// (except meta) and autocast regions.
//
// The archives have the layout of PyTorch's torch/export/pt2_archive and torch/_export/serde.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "runtime/graph/graph.h"
#include "runtime/graph/output_tree.h"

namespace plumbline::capture {

struct ExportedProgram {
  /// Attributes have their qualified names, the order of registration in the model, and tensors; a tied tensor has its
  /// first name, with the others as aliases. Inputs are the program's tensor inputs, under their names in the program;
  /// a number or None given to export is part of the program. There is one output per flat output of the program:
  /// kNoValue for None and constants, a tensor without dimensions for a number computed from data.
  graph::Graph graph;
  /// The nesting of the outputs; the leaves, constants included, are in the order of the program's flat outputs.
  graph::OutputTree output_tree;
  /// One tensor per graph.inputs; empty if the archive has no readable samples. sample_inputs_error then has the
  /// reason.
  std::vector<at::Tensor> sample_inputs;
  std::string sample_inputs_error;
  /// The version of PyTorch that wrote the archive; empty if the archive does not record one.
  std::string torch_version;
  std::string schema_version;  ///< of the export schema: "8.20"
};

/// Reads an archive and converts its program. A dimension exported as a symbol takes its size from the sample inputs.
///
/// Throws InputError, one line that begins with the file's name, for a file that is not an archive of
/// torch.export.save(), is damaged or truncated; another major schema version; big-endian tensors; a tensor subclass or
/// custom object; an operator without a CPU kernel in this process; a higher-order operator other than cond, grad-mode
/// and autocast regions; a functionalised program; and a symbolic input without a sample to take its size from. Errors
/// about a node give its name, operator and module.
ExportedProgram read_program(const std::filesystem::path& path);

}  // namespace plumbline::capture
