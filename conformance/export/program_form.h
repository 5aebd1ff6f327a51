// The programs of a case: its model cut into stages, captured for every shape and mode that the steps need.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "conformance/export/portable_stage.h"
#include "reference/case.h"
#include "reference/models/zoo.h"
#include "runtime/io/tensor_file.h"
#include "runtime/split/pipe.h"

namespace plumbline::conformance {

/// The model in one mode, for micro-batches of one shape.
struct Program {
  bool training = true;
  split::Pipe pipe;
  std::vector<PortableStage> stages;
};

/// One micro-batch of a step.
struct ProgramUse {
  int program = 0;
  std::vector<at::Tensor> inputs;
  at::Tensor target;  ///< undefined without a target
  double loss_weight = 1.0;
};

/// The programs that the batches of a case need, numbered in the order of first use.
class ProgramSet {
 public:
  ProgramSet(const reference::Case& c, uint64_t seed, int stages);

  const models::Model& model() const { return model_; }
  const std::vector<Program>& programs() const { return programs_; }
  /// The use of a batch by micro-batch. Throws InputError if the program cannot be exported.
  std::vector<ProgramUse> use(const models::Batch& batch, bool training);
  /// Executes a Freeze or Unfreeze step and returns the names of the matched parameters.
  std::vector<std::string> set_trainable(const std::string& pattern, bool trainable);

  /// program.json.
  Json to_json() const;
  /// Adds the values of parameters, buffers and constants before the first step: "parameter/NAME", "buffer/NAME" and
  /// "constant/PROGRAM/STAGE/NUMBER".
  void add_tensors(TensorMap& tensors) const;

 private:
  int program_for(const std::vector<at::Tensor>& inputs, bool training);
  std::vector<double> counts(const std::vector<ProgramUse>& uses) const;

  const reference::Case& case_;
  models::Model model_;
  split::SplitOptions split_;
  std::set<std::string> frozen_;  ///< before the first step
  std::vector<Program> programs_;
  std::map<std::string, int> known_;
};

}  // namespace plumbline::conformance
