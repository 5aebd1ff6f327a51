// A conformance case as plain data: which model, which data, which steps, and which kind of truth judges the result.
// Everything that can run a case (the runtime, an oracle, a foreign backend) works from this description alone;
// numbers come from (seed, name, index), so that each rank makes its own part and all agree.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace plumbline::reference {

/// What a result is held against; see docs/truth.md.
enum class Truth {
  Exact,      ///< integer-valued data, every partial sum representable: bitwise in any order, against the whole model
  SameOrder,  ///< real data: bitwise against the detached stages run in the schedule's own order of accumulation
  Bounded,    ///< float64 value with a running error bound for each element and a gate on the relative norm
};

enum class LossKind {
  Sum,           ///< sum (or mean) of output 0; no target
  Mse,           ///< squared difference of output 0 and the target
  CrossEntropy,  ///< output 0 [..., classes] against integer targets [...]
  Output,        ///< output 0 is the loss already (a scalar for each micro-batch); the target is an input of the model
};

enum class Reduction { Sum, Mean };

/// The class index of a target that counts for nothing.
inline constexpr int64_t kIgnoredTarget = -100;

struct LossSpec {
  LossKind kind = LossKind::Sum;
  Reduction reduction = Reduction::Sum;
  /// Cross entropy only: some targets are kIgnoredTarget, in each row another number of them. A mean is then over those
  /// that are not, in the whole batch: a micro-batch weighs by how many it has.
  bool ignores_targets = false;
};

enum class StepKind {
  Train,      ///< forward and backward of one batch; gradients accumulate
  Eval,       ///< forward of one batch; no gradient, no change of gradients
  ZeroGrad,   ///< forget the accumulated gradients
  Optimizer,  ///< update every parameter that has a gradient from it
  Freeze,     ///< the parameters of that name require no gradient from here on; what they have accumulated stays
  Unfreeze,   ///< they do again
};

struct Step {
  StepKind kind = StepKind::Train;
  int rows = 0;            ///< of this step's batch; 0: the case's
  bool has_target = true;  ///< of an Eval: without one there are outputs and no loss
  std::string parameters;  ///< of Freeze and Unfreeze: a shell pattern (fnmatch) of canonical names

  // NOLINTNEXTLINE(google-explicit-constructor): most steps are their kind and nothing else
  Step(StepKind step_kind) : kind(step_kind) {}
  Step(StepKind step_kind, int step_rows, bool target = true) : kind(step_kind), rows(step_rows), has_target(target) {}
  Step(StepKind step_kind, std::string names) : kind(step_kind), parameters(std::move(names)) {}

  /// Of one kind, whatever else.
  friend bool operator==(const Step& step, StepKind step_kind) { return step.kind == step_kind; }
};

enum class OptimizerKind { Sgd, AdamW };

struct OptimizerSpec {
  double learning_rate = 0.0;
  double momentum = 0.0;  ///< of Sgd
  OptimizerKind kind = OptimizerKind::Sgd;
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8, weight_decay = 0.0;  ///< of AdamW
};

enum class Dtype { F32, BF16, F64, F16 };

struct Case {
  std::string id;     ///< never changes its meaning; a corrected case gets a new id
  std::string title;  ///< one line for people
  std::string why;    ///< the class of bug it hunts
  Truth truth = Truth::Exact;
  std::string model;  ///< a name of reference/models/zoo.h
  Dtype dtype = Dtype::F32;
  int rows = 8;  ///< rows of a batch along the chunked dimension
  int microbatches = 4;
  LossSpec loss;
  /// Whether a step's gradients are divided by the number of micro-batches.
  bool divide_by_microbatches = true;
  std::vector<Step> steps = {StepKind::Train};
  OptimizerSpec optimizer = {};
  /// Inputs of real numbers require gradients, which are results as well: ResultKind::InputGrad, by micro-batch and the
  /// input's name, as the backward of that micro-batch left them (never divided; of a replicated input each
  /// micro-batch's share). Whole numbers never have one.
  bool input_gradients = false;
  /// In train steps the inputs are given by name.
  bool keyword_inputs = false;
  /// Every parameter has a user's hook, which doubles what it is given, and counts; the counts are results as well:
  /// ResultKind::HookCalls, by stage, micro-batch and the parameter's name.
  bool parameter_hooks = false;
  /// In train steps every stage puts a user's hook on each value that it takes from another stage and that wants a
  /// gradient. It counts, and changes nothing; the counts are results as well: ResultKind::HookCalls, by stage,
  /// micro-batch and the boundary's name.
  bool boundary_hooks = false;
  /// A schedule of the case's own, which must be followed, as CSV of computations with a row for each rank: it fixes
  /// the number of ranks and of stages. Empty: any schedule.
  std::string schedule_csv = {};
  /// Which micro-batches' stages are run again in their backward: "never", "except-last" or "always". No result changes
  /// by it.
  std::string recompute = "never";
  /// What the case stands for, beside what its other fields say: words of conformance/corpus/features.h.
  std::vector<std::string> features = {};
};

/// "exact", "same-order", "bounded".
std::string_view to_string(Truth value);

}  // namespace plumbline::reference

namespace plumbline {
using reference::LossKind;
using reference::OptimizerKind;
using reference::OptimizerSpec;
using reference::Reduction;
using reference::StepKind;
}  // namespace plumbline
