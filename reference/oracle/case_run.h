// Runs the steps of a case in order, and so defines each kind of step for every executor of a case.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "reference/case.h"
#include "reference/models/zoo.h"
#include "reference/named_tensors.h"
#include "reference/oracle/saved_state.h"
#include "reference/results.h"

namespace plumbline::reference {

class CaseOptimizer;

/// An executor of a case: the engine's rank, the whole model, the detached stages.
class CaseSubject {
 public:
  virtual ~CaseSubject() = default;
  /// Runs a forward and backward of every micro-batch of `batch`, and adds the gradients to those of parameters().
  /// `step` is the position in Case::steps, for result keys.
  virtual void train(int step, const models::Batch& batch) = 0;
  /// Runs a forward of every micro-batch without gradients. If the target of `batch` is undefined, there are outputs
  /// but no loss.
  virtual void evaluate(int step, const models::Batch& batch) = 0;
  /// Drops all gradients.
  virtual void zero_grad() = 0;
  /// Sets whether the parameters whose canonical names match `pattern` (fnmatch) require gradients from here on.
  virtual void set_trainable(const std::string& pattern, bool trainable) = 0;
  /// The parameters, or buffers, that this subject holds, by canonical name; the tensors themselves, not copies. A
  /// shared parameter may have several copies under one name, all of which are updated.
  virtual NamedTensors parameters() const = 0;
  virtual NamedTensors buffers() const = 0;
  /// The norm over the gradients of all parameters of the model, also those that this subject does not hold, a shared
  /// parameter counted once; 0 without any gradient, and not finite if a gradient is not.
  virtual double gradient_norm(NormKind kind) const = 0;
  /// Updates parameters() by one step of the optimizer, after the gradients were unscaled and clipped.
  virtual void update(CaseOptimizer& optimizer);
};

/// Runs every step of the case on `subject`, whose parameters and buffers are those of `begin`, as is the optimizer's
/// state. Batches are functions of (model, seed, number of the batch), where the number counts Train and Eval steps,
/// those in Case::steps_before too. Records `grad` after each train step (if keeps_details) and in each Read step,
/// `grad-norm` in an Optimizer step that clips, `buffer` and `param` after the last step, and `optimizer-state` if the
/// case saves it. Of several copies under one name, the first is recorded; a copy that differs from it, or lacks a
/// gradient, is also recorded, under a name that no correct run has.
void run_case(const Case& c, uint64_t seed, CaseSubject& subject, Results& results, const SavedState& begin = {});

/// Whether a result is recorded as such a copy that differs from the first.
bool is_differing_copy(std::string_view key);

}  // namespace plumbline::reference
