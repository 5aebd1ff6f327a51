// Builds the batch of a program: from a file, or by varying the archive's sample inputs.
#pragma once

#include "conformance/program/loss.h"
#include "conformance/program/options.h"
#include "runtime/microbatch/chunk_spec.h"

namespace plumbline::program {

struct ProgramBatch {
  int microbatches = 0;
  std::vector<at::Tensor> inputs;             ///< by program input, the whole batch
  std::vector<microbatch::ChunkSpec> chunks;  ///< along dimension 0, or the same for every micro-batch
  at::Tensor target;                          ///< undefined if the loss takes none
};

/// `options.inputs` is a safetensors file that holds the whole batch under the names of the program's inputs, and the
/// loss's target under its name. A tensor with the rows of all micro-batches together is divided along dimension 0; a
/// tensor with the program's shape goes to every micro-batch. Without a file the sample inputs are varied for each
/// (seed, micro-batch): floating-point values get noise, integers are permuted, booleans and tensors without dimensions
/// stay.
///
/// Throws InputError naming the input that is missing, unknown, of another dtype, or of a shape other than the one to
/// which the program is specialised.
ProgramBatch program_batch(const capture::ExportedProgram& program, const ProgramLoss& loss,
                           const ProgramOptions& options, int stages);

}  // namespace plumbline::program
