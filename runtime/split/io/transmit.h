// Serialises stages for another rank: rank 0 captures and splits once, and sends every rank the structure of the pipe
// with the graphs and tensors of that rank's stages only.
//
// The bytes are valid only for the same build of the program and the same run. They are a line with the version of the
// format, a checksum and the length of the content, and the content: the run's id, the JSON of the pipe (pipe_json.h)
// and of its tensors (stored_tensors.h), and the tensors as safetensors, each preceded by its length. Numbers are
// 64-bit little-endian.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/split/pipe.h"

namespace plumbline::split {

/// Returns the bytes of `pipe`'s structure (boundaries, shared parameters, every stage's inputs and outputs) and of the
/// graphs of `stages` with their parameters, buffers and constants. Tensors arrive on the CPU (a meta tensor stays
/// meta), row-major unless they had another order without gaps; tensors and memory shared under several names arrive
/// shared. Throws Error for a tensor that is not dense. Aborts if a stage is listed twice or does not exist.
std::string pack_stages(const Pipe& pipe, const std::vector<int>& stages, const std::string& run_id);

/// Returns the pipe; the graphs of stages that were not packed are empty. Throws InputError for bytes that
/// pack_stages() did not make, that have another version or run id, or that are truncated or damaged.
Pipe unpack_stages(std::string_view bytes, const std::string& run_id);

}  // namespace plumbline::split
