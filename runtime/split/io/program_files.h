// A split program on disk, as `plumbline split -o DIR` writes it:
//
//   program.json          the pipe (pipe_json.h) and, by stage, the facts about its tensors (stored_tensors.h)
//   stage0.safetensors    the parameters and buffers of stage 0 by their qualified names; tensors outside the state
//                         dict as "transient/NAME" and "constant/NAME"
//   stage1.safetensors    ...
#pragma once

#include <filesystem>

#include "runtime/split/pipe.h"

namespace plumbline::split {

/// Creates `folder` if it is missing. program.json is removed first and written last, each file under a temporary name:
/// a folder that has one is complete. Throws InputError naming a file that cannot be written, Error for a tensor that
/// is not dense.
void write_pipe(const Pipe& pipe, const std::filesystem::path& folder);

/// A parameter that several stages share becomes one copy in each. Throws InputError naming the file and the fault in
/// it.
Pipe read_pipe(const std::filesystem::path& folder);

}  // namespace plumbline::split
