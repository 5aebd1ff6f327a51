// Runs the steps of a case in order: defines each kind of step for every executor of a case.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "reference/case.h"
#include "reference/models/zoo.h"
#include "reference/named_tensors.h"
#include "reference/results.h"

namespace plumbline::reference {

/// An executor of a case: the engine's rank, the whole model, the detached stages.
class CaseSubject {
 public:
  virtual ~CaseSubject() = default;
  /// `step` is the number for result keys, the position in Case::steps.
  virtual void train(int step, const models::Batch& batch) = 0;
  /// If the target of `batch` is undefined, there are outputs but no loss.
  virtual void evaluate(int step, const models::Batch& batch) = 0;
  virtual void zero_grad() = 0;
  /// Sets whether the parameters whose canonical names match `pattern` (fnmatch) require gradients from here on.
  virtual void set_trainable(const std::string& pattern, bool trainable) = 0;
  /// By canonical name, for those that this subject holds. A shared parameter may have several copies, all of which are
  /// updated.
  virtual NamedTensors parameters() const = 0;
  virtual NamedTensors buffers() const = 0;
};

/// Runs every step of the case on `subject`; batches are functions of (model, seed, number of the batch). Records
/// `grad` after each train step (if details are kept), and `buffer` and `param` after the last step. Of several copies
/// under one name, the first is recorded.
void run_case(const Case& c, uint64_t seed, CaseSubject& subject, Results& results);

}  // namespace plumbline::reference
