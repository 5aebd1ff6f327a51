// Reads and writes a split program as files, the output of `plumbline split -o DIR`:
//
//   program.json          "pipe": the pipe (pipe_json.h); "tensors": for each stage, the description of its tensors
//                         (stored_tensors.h)
//   stage0.safetensors    the parameters and buffers of stage 0 by their qualified names; tensors outside the state
//                         dict as "transient/NAME" and "constant/NAME"
//   stage1.safetensors    ...
#pragma once

#include <filesystem>

#include "runtime/split/pipe.h"

namespace plumbline::split {

/// Writes the files; creates `folder` if it is missing, and removes stage files of an earlier, longer pipe.
/// program.json is removed first and written last, and each file is renamed from a temporary one, so a folder that has
/// a program.json is complete. Throws InputError naming a file that cannot be written, Error for a tensor that is not
/// dense or for a full disk.
void write_pipe(const Pipe& pipe, const std::filesystem::path& folder);

/// Reads the files. A shared parameter is read as one separate tensor for each stage. Throws InputError naming the file
/// and the fault.
Pipe read_pipe(const std::filesystem::path& folder);

}  // namespace plumbline::split
