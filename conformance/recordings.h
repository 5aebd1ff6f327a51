// Two recordings of the same training, one by a pipeline and one by a single rank, held against each other.
//
// A recording is a folder with any number of safetensors files, in it or below, whose names are result keys
// (reference/result_key.h) in which the name of a boundary is that of the module behind it. Which stage a module lies
// in is not the same in both, so stages do not count. A file recording.json beside them may list the modules in the
// order of the forward, {"schema": "plumbline-recording/1", "modules": ["embed", "layers.0", ...]}; without it the
// order is that of the pipeline's stages, and of names within a stage (layers.2 before layers.10).
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "conformance/compare.h"

namespace plumbline {

struct RecordingsVerdict {
  std::vector<Difference> differences;  ///< first cause first; stages are left out of the keys
  std::vector<std::string> checked;     ///< kinds that both have
  int64_t tensors = 0;                  ///< that both have

  bool equal() const { return differences.empty(); }
};

/// Holds what a pipeline recorded against what one rank recorded: bit for bit, every tensor that either of them has.
/// InputError of one line: a folder without recordings, a file that cannot be read, two files that disagree on one
/// tensor, a recording.json that is none.
RecordingsVerdict compare_recordings(const std::filesystem::path& pipeline, const std::filesystem::path& one_rank);

/// "step 0, micro-batch 2, forward of module `layers.3`: f32[2,8] differs in 5 of 16 elements; first at [0,3]: expected
/// 4, got 4.004".
std::string recording_sentence(const Difference& difference);

}  // namespace plumbline
