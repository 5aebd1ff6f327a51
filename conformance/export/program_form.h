// The programs of a case: its model cut into stages, captured anew for every combination of input shapes, mode and
// frozen parameters that occurs in the steps.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "conformance/export/portable_stage.h"
#include "reference/case.h"
#include "reference/models/zoo.h"
#include "reference/oracle/saved_state.h"
#include "runtime/io/tensor_file.h"
#include "runtime/split/pipe.h"

namespace plumbline::conformance {

/// The model in one mode, for micro-batches of one shape, of which all or no inputs require gradients, and one set of
/// frozen parameters.
struct Program {
  bool training = true;
  split::Pipe pipe;
  std::vector<PortableStage> stages;  ///< the stages of `pipe`, in their order
  /// The stage in which the forward ends (models::Model::exits_early); later ones are empty in `pipe` and `stages`.
  int last = 0;
};

/// One micro-batch of a step.
struct ProgramUse {
  int program = 0;                 ///< index in ProgramSet::programs()
  std::vector<at::Tensor> inputs;  ///< pieces of the batch's inputs; undefined: None
  Targets targets;
  /// The factor of the micro-batch's loss in training: the case's loss scale, times the micro-batch's weight in a mean,
  /// which is 1 for micro-batches of equal size.
  double loss_weight = 1.0;
};

/// The programs that the batches of a case need, numbered in the order of first use.
class ProgramSet {
 public:
  /// Constructs the model of `c`, which must outlive the set, in the state with which the case begins. Throws
  /// InputError if it cannot be cut into that many stages.
  ProgramSet(const reference::Case& c, uint64_t seed, int stages, const reference::SavedState& begin = {});

  const models::Model& model() const { return model_; }
  const std::vector<Program>& programs() const { return programs_; }
  /// Divides a batch into micro-batches and captures the programs that they need and that the set lacks. Returns one
  /// entry for each micro-batch. Throws InputError if a program cannot be exported.
  std::vector<ProgramUse> use(const models::Batch& batch, bool training);
  /// Executes a Freeze or Unfreeze step on the model, which affects the following calls of use(). Returns the names of
  /// the parameters that match the shell pattern.
  std::vector<std::string> set_trainable(const std::string& pattern, bool trainable);

  /// The contents of program.json. Precondition: use() was called.
  Json to_json() const;
  /// Adds the values of parameters, buffers and constants before the first step, as "parameter/NAME", "buffer/NAME" and
  /// "constant/PROGRAM/STAGE/VALUE". Precondition: use() was called.
  void add_tensors(TensorMap& tensors) const;

 private:
  int program_for(const std::vector<at::Tensor>& inputs, bool training);
  std::vector<double> counts(const std::vector<ProgramUse>& uses) const;

  const reference::Case& case_;
  models::Model model_;
  size_t stages_;
  split::SplitOptions split_;
  std::set<std::string> frozen_;  ///< before the first step
  std::vector<Program> programs_;
  std::map<std::string, int> known_;
};

}  // namespace plumbline::conformance
