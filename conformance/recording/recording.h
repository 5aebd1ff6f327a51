// Reads the recording that plumbline_recorder.py (conformance/python) writes during a run of a training script: a
// folder with rank<R>.json for each rank, which lists its files, and a safetensors file for each rank and step.
//
// rank<R>.json, schema plumbline-recorder/1:
//   rank, ranks, microbatches   numbers; files written by one run agree on the last two
//   whole_batch                 true: one forward ran the whole batch; its values were cut into micro-batches
//   loss_scale                  the factor of a micro-batch's loss before its backward
//   perturb                     the seed of a perturbed run (against.h), else null
//   torch                       the version of PyTorch, for information
//   files                       rank<R>.step<S>.safetensors, one for each step, from step 0
//   parameters                  the qualified names that this rank holds
//   order                       names of values in the order of the first forward
//   tied                        from the other names of a parameter with several to its first; may be absent
// Tensors are named by result key (reference/result_key.h). Kinds: forward and backward of the inputs and outputs of
// modules (`layers.3:in`, `layers.3:out`) and of parameters; loss, grad, buffer. Perturbed runs are in the subfolders
// perturbed-<number>.
#pragma once

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "reference/result_key.h"
#include "runtime/io/tensor_file.h"

namespace plumbline::conformance {

struct Recording {
  std::filesystem::path folder = {};
  int microbatches = 0;
  bool whole_batch = false;
  double loss_scale = 1.0;
  bool is_perturbed = false;
  std::vector<std::string> order = {};                         ///< of all ranks, one after the other, each name once
  std::set<std::string> parameters = {};                       ///< of all ranks
  std::map<std::string, std::string> tied = {};                ///< of all ranks: other name -> first name
  std::vector<std::vector<std::filesystem::path>> files = {};  ///< [step][rank], for the steps that all ranks have
  std::vector<std::filesystem::path> perturbed = {};           ///< the folders of perturbed runs, sorted by name

  int steps() const { return static_cast<int>(files.size()); }
  int ranks() const { return files.empty() ? 0 : static_cast<int>(files.front().size()); }
};

/// Whether a folder looks like a recording: it contains rank0.json.
bool is_recording(const std::filesystem::path& folder);

/// Reads the rank<R>.json of all ranks, but no tensors. Throws InputError of one line for a folder without a recording,
/// a missing rank, files of different runs, a malformed file, another schema, and a recording without a complete step.
Recording read_recording(const std::filesystem::path& folder);

/// A value as one rank recorded it.
struct RecordedCopy {
  int rank = 0;
  int stage = -1;  ///< -1: does not apply
  HostTensor tensor;
};

/// The identity of a value in any cut of the model: its result key without the stage.
struct ValueKey {
  reference::ResultKind kind = reference::ResultKind::Forward;
  int microbatch = -1;  ///< -1: does not apply
  std::string name;
  auto operator<=>(const ValueKey&) const = default;
};

/// The values of one step. A value has several copies if several stages share a tied parameter or contain a module of
/// the same name.
using RecordedStep = std::map<ValueKey, std::vector<RecordedCopy>>;

/// Reads the tensors of all ranks for a step, which must be below steps(). Throws InputError for a file that cannot be
/// read, a key of another step, and a value of one stage from two ranks (replicas of a model are not compared).
RecordedStep read_step(const Recording& recording, int step);

}  // namespace plumbline::conformance
