// Serialises stages for another rank: rank 0 captures and splits once, and sends every rank the structure of the pipe
// with the graphs and tensors of that rank's stages only.
//
// The bytes are valid for the same build of the program and the same run only: a line with the format's version, then
// (64-bit little-endian) a checksum and the length of the rest: the run's id, the pipe's JSON (pipe_json.h,
// stored_tensors.h) and the tensors as safetensors.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/split/pipe.h"

namespace plumbline::split {

/// The structure of `pipe` (boundaries, shared parameters, every stage's inputs and outputs), and the graphs of
/// `stages` with their parameters, buffers and constants. Tensors arrive on the CPU (a meta tensor stays meta),
/// row-major unless they were dense in another order; tensors and memory shared under several names arrive shared.
/// Throws Error for a tensor that is not dense.
std::string pack_stages(const Pipe& pipe, const std::vector<int>& stages, const std::string& run_id);

/// The graphs of stages that were not packed are empty. Throws InputError, one line, for other bytes, another version,
/// another run's bytes, truncated or damaged ones.
Pipe unpack_stages(std::string_view bytes, const std::string& run_id);

}  // namespace plumbline::split
