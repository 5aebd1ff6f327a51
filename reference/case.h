// A conformance case as plain data: its model, data, steps, and the kind of truth that judges the results. An executor
// of a case (the runtime, an oracle, a foreign backend) needs only this description and a seed. All parameters and data
// are functions of (seed, name, index), so each rank computes only its part and all ranks agree.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace plumbline::reference {

/// The truth that judges a result; see docs/truth.md.
enum class Truth {
  Exact,      ///< integer-valued data, all partial sums representable: equals the whole model bitwise, in any order
  SameOrder,  ///< real data: equals the detached stages bitwise, run in the schedule's order of accumulation
  Bounded,    ///< a float64 value with a running error bound for each element and a gate on the relative norm
};

enum class LossKind {
  Sum,           ///< sum (or mean) of output 0; no target
  Mse,           ///< squared difference of output 0 and the target
  CrossEntropy,  ///< output 0 [..., classes] against integer targets [...]
  Output,        ///< output 0 is already the loss (a scalar for each micro-batch); the target is an input of the model
};

enum class Reduction {
  Sum,
  Mean,       ///< over the micro-batch
  BatchMean,  ///< the micro-batch's part of the mean over the whole batch: its sum over the batch's number of elements
};

/// The class index of a target that is ignored.
inline constexpr int64_t kIgnoredTarget = -100;

enum class AuxiliaryLosses {
  None,     ///< they are plain outputs
  Added,    ///< the loss function adds them to the loss of the last stage, to which they travel
  InPlace,  ///< each stays in its stage, whose backward begins at it as well
};

struct LossSpec {
  LossKind kind = LossKind::Sum;
  Reduction reduction = Reduction::Sum;
  /// Cross entropy only: in each row the targets from a random position on (never the first; possibly none) are
  /// kIgnoredTarget. A mean is then taken over the remaining targets of the whole batch: a micro-batch is weighted by
  /// the number of its remaining targets.
  bool ignores_targets = false;
  /// With ignores_targets: in this many of a batch's last rows all targets are ignored, so that a micro-batch may have
  /// none that counts. Not for a Mean, which of no targets is not a number.
  int ignored_rows = 0;
  /// Cross entropy only: each class has a weight (class_weight() in reference/loss.h). A mean is then a weighted one.
  bool class_weights = false;
  /// A mean of means: every micro-batch weighs the same, however many rows it has.
  bool equal_weights = false;
  /// The loss function has parameters of its own, a scale and a shift: it compares scale * y + shift with the target,
  /// where y is the output. They are parameters of the model that no stage's forward reads (Model::loss_parameters).
  bool parameters = false;
  /// The treatment of the model's auxiliary losses (Model::auxiliary_losses), scalars that its early stages make.
  AuxiliaryLosses auxiliary = AuxiliaryLosses::None;
};

/// The part that divides a train step's gradients by the number of micro-batches.
enum class Division {
  Engine,  ///< the engine divides the sum over the micro-batches, before it is added to earlier gradients
  User,    ///< the user's loss function divides each loss; the engine divides nothing
  Nobody,
};

enum class StepKind {
  Train,      ///< forward and backward of one batch; gradients accumulate
  Eval,       ///< forward of one batch; no gradient, no change of gradients
  ZeroGrad,   ///< drop the accumulated gradients
  Optimizer,  ///< update every parameter that has a gradient
  Freeze,     ///< the named parameters require no gradient from this step on; accumulated gradients stay
  Unfreeze,   ///< the named parameters require gradients again
  Read,       ///< the accumulated gradients are results, as after a train step
};

struct Step {
  StepKind kind = StepKind::Train;
  int rows = 0;            ///< for Train and Eval: rows of the batch; 0: Case::rows
  bool has_target = true;  ///< for Eval: false if the batch has no target, and so no loss that needs one
  std::string parameters;  ///< for Freeze and Unfreeze: a shell pattern (fnmatch) of canonical names

  // NOLINTNEXTLINE(google-explicit-constructor): most steps consist of their kind alone
  Step(StepKind step_kind) : kind(step_kind) {}
  Step(StepKind step_kind, int step_rows, bool target = true) : kind(step_kind), rows(step_rows), has_target(target) {}
  Step(StepKind step_kind, std::string names) : kind(step_kind), parameters(std::move(names)) {}

  /// Whether the step is of that kind, whatever its other fields.
  friend bool operator==(const Step& step, StepKind step_kind) { return step.kind == step_kind; }
};

enum class OptimizerKind { Sgd, AdamW };

enum class NormKind { Two, Infinity };

struct OptimizerSpec {
  double learning_rate = 0.0;
  double momentum = 0.0;  ///< for Sgd
  OptimizerKind kind = OptimizerKind::Sgd;
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;  ///< for AdamW
  double weight_decay = 0.0;  ///< for Sgd, added to the gradient (times the parameter); for AdamW, decoupled
  /// If not 0, an Optimizer step clips the gradients: it multiplies all of them by clip_norm / (norm + clip_epsilon) if
  /// that is less than 1, where `norm` is the norm over all parameters of all stages, a shared one counted once.
  /// The norm before clipping is a result, ResultKind::GradNorm.
  double clip_norm = 0.0;
  double clip_epsilon = 1e-6;  ///< 1e-6 as in torch.nn.utils.clip_grad_norm_
  NormKind norm = NormKind::Two;
  /// An Optimizer step changes nothing on any stage if a gradient of any stage is not finite.
  bool skip_nonfinite = false;
  /// The backward of each loss begins with this factor; an Optimizer step first divides all gradients by it.
  double loss_scale = 1.0;
};

enum class Dtype { F32, BF16, F64, F16 };

/// The words of enumerations in files and reports, in the order of the enumerators.
inline constexpr auto kTruthWords = std::to_array<std::string_view>({"exact", "same-order", "bounded"});
inline constexpr auto kDtypeWords = std::to_array<std::string_view>({"f32", "bf16", "f64", "f16"});
inline constexpr auto kLossWords = std::to_array<std::string_view>({"sum", "mse", "cross-entropy", "output"});
inline constexpr auto kReductionWords = std::to_array<std::string_view>({"sum", "mean", "batch-mean"});
inline constexpr auto kAuxiliaryWords = std::to_array<std::string_view>({"none", "added", "in-place"});
inline constexpr auto kDivisionWords = std::to_array<std::string_view>({"engine", "user", "nobody"});
inline constexpr auto kStepWords =
    std::to_array<std::string_view>({"train", "eval", "zero_grad", "optimizer", "freeze", "unfreeze", "read"});
inline constexpr auto kNormWords = std::to_array<std::string_view>({"2", "inf"});
inline constexpr auto kOptimizerWords = std::to_array<std::string_view>({"sgd", "adamw"});
inline std::string_view to_string(Truth truth) { return kTruthWords.at(static_cast<size_t>(truth)); }
inline std::string_view to_string(Dtype dtype) { return kDtypeWords.at(static_cast<size_t>(dtype)); }
inline std::string_view to_string(LossKind kind) { return kLossWords.at(static_cast<size_t>(kind)); }
inline std::string_view to_string(StepKind kind) { return kStepWords.at(static_cast<size_t>(kind)); }

struct Case {
  std::string id;     ///< never changes its meaning; a corrected case gets a new id
  std::string title;  ///< one line for people
  std::string why;    ///< the class of bugs that the case targets
  Truth truth = Truth::Exact;
  std::string model;  ///< a name of reference/models/zoo.h
  Dtype dtype = Dtype::F32;
  int rows = 8;  ///< rows of a batch along the chunked dimension
  int microbatches = 4;
  LossSpec loss;
  Division division = Division::Engine;
  std::vector<Step> steps = {StepKind::Train};
  /// Steps that another run has executed, by the whole model: `steps` begin with the parameters, buffers and optimizer
  /// state that it saved, and with the batch after its last one. No requires_grad flag is saved.
  std::vector<Step> steps_before = {};
  OptimizerSpec optimizer = {};
  /// The optimizer's state after the last step is a result, ResultKind::OptimizerState, as a checkpoint saves it.
  bool saves_optimizer = false;
  /// In train steps floating-point inputs require gradients. These are also results: ResultKind::InputGrad, by
  /// micro-batch and the input's name, as the backward of that micro-batch left them (never divided; for a replicated
  /// input, each micro-batch's share). Integer inputs never have a gradient.
  bool input_gradients = false;
  /// With input_gradients: the micro-batches whose inputs require gradients, ascending; empty: all.
  std::vector<int> gradient_microbatches = {};
  /// With input_gradients: each input is one leaf for the whole batch, and its gradient is read from that leaf after
  /// the step: ResultKind::InputGrad without a micro-batch; of a replicated input the sum over the micro-batches.
  bool whole_gradients = false;
  /// The user divides the batch: a step takes a list of micro-batches. Besides their rows they differ as the model's
  /// batches do, in the lengths of sequences for example; each has a replicated input of its own.
  bool divided = false;
  /// In train steps the inputs are passed by name.
  bool keyword_inputs = false;
  /// Every parameter has a user's hook that doubles its gradient and counts its calls. The counts are also results:
  /// ResultKind::HookCalls, by stage, micro-batch and the parameter's name. (The whole model as an oracle records no
  /// counts.)
  bool parameter_hooks = false;
  /// In train steps every stage registers a user's hook on each value that it receives from another stage and that
  /// requires a gradient. The hook counts its calls and changes nothing. The counts are also results:
  /// ResultKind::HookCalls, by stage, micro-batch and the boundary's name.
  bool boundary_hooks = false;
  /// Every parameter has a user's hook that autograd calls after each accumulation into .grad. The hook counts its
  /// calls and keeps .grad as it finds it; both are results, by stage, micro-batch and the parameter's name:
  /// ResultKind::HookCalls and ResultKind::Accumulated. Not together with parameter_hooks, whose counts have the same
  /// keys. Every Train step begins without gradients.
  bool accumulation_hooks = false;
  /// The user's linear layers compute the gradients of their parameters apart from autograd, as work that the engine
  /// has to call once after each micro-batch's backward (EngineOptions::weight_work). It changes no result.
  bool weight_closures = false;
  /// A mandatory schedule, as CSV of computations with one row per rank; it fixes the number of ranks and stages.
  /// Empty: any schedule.
  std::string schedule_csv = {};
  /// The micro-batches for which stages are recomputed in their backward: "never", "except-last" or "always".
  /// Recomputation changes no result.
  std::string recompute = "never";
  /// Features of the case that its other fields do not imply: names from conformance/corpus/features.h.
  std::vector<std::string> features = {};
  /// Data-parallel replicas of the pipeline, each on ranks of its own: replica d of D executes the micro-batches from
  /// d * M / D to before (d + 1) * M / D of the M in `microbatches`. Gradients are summed over all of them.
  int replicas = 1;
  /// Between its uses the parameters of a stage are divided among the replicas.
  bool shards_parameters = false;
  int data = 0;  ///< which batches it has: from 1 on they are drawn anew, see make_batch() of reference/models/zoo.h
};

/// The rows of the batch of a Train or Eval step.
inline int rows_of(const Case& c, const Step& step) { return step.rows > 0 ? step.rows : c.rows; }

/// The rows of the smallest batch, of any step or step before.
int least_rows(const Case& c);

/// Whether the inputs of a micro-batch of a train step require gradients.
bool requires_gradients(const Case& c, int microbatch);

}  // namespace plumbline::reference

namespace plumbline {
using reference::LossKind;
using reference::OptimizerKind;
using reference::OptimizerSpec;
using reference::Reduction;
using reference::StepKind;
}  // namespace plumbline
