// Builds the batch of a program's step: from a file, or by varying the archive's sample inputs.
#pragma once

#include "conformance/program/loss.h"
#include "conformance/program/options.h"
#include "runtime/microbatch/chunk_spec.h"

namespace plumbline::program {

struct ProgramBatch {
  int microbatches = 0;
  std::vector<at::Tensor> inputs;             ///< the whole batch, in the order of the program's inputs
  std::vector<microbatch::ChunkSpec> chunks;  ///< of each input: divided along dimension 0, or replicated
  at::Tensor target;                          ///< of the whole batch; undefined if the loss has no target
};

/// If options.inputs is not empty, it names a safetensors file with the whole batch under the names of the program's
/// inputs, and the target of the loss under its name. A tensor with the rows of all micro-batches is divided along
/// dimension 0; a tensor with the program's shape is replicated. Without options.microbatches, the number of
/// micro-batches is the largest that an input contains.
///
/// Without a file, the archive's sample inputs are varied for each (seed, input, micro-batch): floating-point values
/// get standard normal noise, the elements of integer tensors are permuted, booleans and tensors without dimensions
/// stay. A target that is not an input is random. The number of micro-batches is options.microbatches, or else
/// `stages`.
///
/// Throws InputError, which names the tensor, for an input or target that is missing, of another dtype, or of a shape
/// to which the program is not specialised; for a tensor in the file that is neither; and if the archive's sample
/// inputs are needed but cannot be read.
ProgramBatch program_batch(const capture::ExportedProgram& program, const ProgramLoss& loss,
                           const ProgramOptions& options, int stages);

}  // namespace plumbline::program
