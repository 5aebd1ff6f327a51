// What plumbline_recorder.py (conformance/python) left of a run of somebody's own training script: a folder with
// rank<R>.json for each rank, which lists its files, and the safetensors files, one for each rank and step.
//
// rank<R>.json, schema plumbline-recorder/1:
//   rank, ranks, microbatches   numbers; files written by one run agree on the last two
//   whole_batch                 true: one forward ran the whole batch, its values were cut into micro-batches
//   loss_scale                  what this script multiplied a micro-batch's loss with before its backward
//   perturb                     a number where values were moved in the last place, else null
//   torch                       the version, for people
//   files                       rank<R>.step<S>.safetensors, one for each step, from step 0
//   parameters                  the qualified names that this rank holds
//   order                       names of values in the order in which the first forward met them
// Keys of the tensors are result keys (reference/result_key.h). Kinds: forward and backward of values `layers.3:in`,
// `layers.3:out` and of parameters; loss, grad, buffer. Perturbed runs lie in perturbed-<number> below the folder.
#pragma once

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "reference/result_key.h"
#include "runtime/tensor_file.h"

namespace plumbline::conformance {

struct Recording {
  std::filesystem::path folder = {};
  int microbatches = 0;
  bool whole_batch = false;
  double loss_scale = 1.0;
  std::vector<std::string> order = {};                         ///< of all ranks, one after the other, each name once
  std::set<std::string> parameters = {};                       ///< of all ranks
  std::vector<std::vector<std::filesystem::path>> files = {};  ///< of each step that all ranks have, one for each rank
  std::vector<std::filesystem::path> perturbed = {};           ///< the folders of perturbed runs, by name

  int steps() const { return static_cast<int>(files.size()); }
};

/// Whether a folder looks like one: rank0.json is in it.
bool is_recording(const std::filesystem::path& folder);

/// Reads the indexes. InputError of one line: no recording, a rank missing, indexes of different runs, not this schema.
Recording read_recording(const std::filesystem::path& folder);

/// A value as one rank recorded it.
struct RecordedCopy {
  int rank = 0;
  int stage = -1;
  HostTensor tensor;
};

/// What a value is, wherever it was made: its result key without a stage.
struct ValueKey {
  reference::ResultKind kind = reference::ResultKind::Forward;
  int microbatch = -1;
  std::string name;
  auto operator<=>(const ValueKey&) const = default;
};

/// Several copies: a tied parameter in several stages; a module of that name in several stages.
using RecordedStep = std::map<ValueKey, std::vector<RecordedCopy>>;

/// Reads a step's tensors, of all ranks. InputError for a file that cannot be read, a key of another step, and a value
/// of one stage from two ranks (replicas of a model are not compared).
RecordedStep read_step(const Recording& recording, int step);

}  // namespace plumbline::conformance
