// The batch that a program is run on: from a file, or varied from the archive's sample inputs.
#pragma once

#include "conformance/program/loss.h"
#include "conformance/program/options.h"
#include "runtime/microbatch/chunk_spec.h"

namespace plumbline::program {

struct ProgramBatch {
  int microbatches = 0;
  std::vector<at::Tensor> inputs;             ///< by program input, the whole batch
  std::vector<microbatch::ChunkSpec> chunks;  ///< along dimension 0, or the same for every micro-batch
  at::Tensor target;                          ///< undefined where the loss takes none
};

/// From `options.inputs`, a safetensors file that holds the whole batch under the names of the program's inputs (and
/// the loss's target under its own): what has as many rows as all micro-batches together is divided along dimension 0,
/// what has the program's own shape goes to every micro-batch. Without a file, from the sample inputs: each micro-batch
/// has them varied by (seed, micro-batch): noise is added to floating-point values, whole numbers change places, truth
/// values and tensors without dimensions stay.
///
/// Throws InputError naming the input: missing, unknown, of another type, or of a shape that the program, which is
/// specialised to its own, does not take.
ProgramBatch program_batch(const capture::ExportedProgram& program, const ProgramLoss& loss,
                           const ProgramOptions& options, int stages);

}  // namespace plumbline::program
