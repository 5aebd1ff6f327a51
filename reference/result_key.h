// Names of the results of a run: the step, kind, stage and micro-batch that a tensor belongs to, never the rank.
//
// Text form: `<step>/<kind>/<stage>/<microbatch>/<name>`, with `-` for a stage or micro-batch that does not apply, for
// example `0/backward/2/3/v17` and `0/grad/-/-/layers.0.weight`. The name is the rest of the text, is not empty and may
// contain slashes.
#pragma once

#include <string>
#include <string_view>

namespace plumbline::reference {

/// In the order in which a step produces them.
enum class ResultKind {
  Forward,      ///< a boundary value that leaves `stage` for `microbatch`
  Output,       ///< an output of the model for a micro-batch
  Loss,         ///< the loss of a micro-batch: "loss", or an auxiliary loss of an early stage under its output's name
  Backward,     ///< the gradient that `stage` sends back for one of its inputs
  Partial,      ///< a parameter's gradient accumulated by `stage`, after the backward of `microbatch`
  InputGrad,    ///< the gradient of an input of the model for a micro-batch; `stage` does not apply
  HookCalls,    ///< the number of calls of a user's hook on a parameter or boundary value, by `stage` and `microbatch`
  Accumulated,  ///< .grad of a parameter, as found by a user's hook after the accumulation of `microbatch`
  Grad,         ///< the gradient of a parameter after a train or read step
  GradNorm,     ///< the norm of all gradients in an optimizer step, before clipping; a float64 scalar named "norm"
  Buffer,       ///< a buffer after the last step
  Param,        ///< a parameter after the last step
  OptimizerState,  ///< a tensor of the optimizer's state after the last step, named "PARAMETER/ENTRY"; optimizer.h
};

inline constexpr int kResultKinds = static_cast<int>(ResultKind::OptimizerState) + 1;

/// "forward", "output", ... as in a key.
std::string_view kind_name(ResultKind kind);

/// Whether it is a value between stages, or the gradient of one.
constexpr bool is_boundary(ResultKind kind) { return kind == ResultKind::Forward || kind == ResultKind::Backward; }

struct ResultKey {
  /// The position in Case::steps, from 0.
  int step = 0;
  ResultKind kind = ResultKind::Forward;
  int stage = -1;       ///< -1 where it does not apply
  int microbatch = -1;  ///< -1 where it does not apply
  std::string name;

  bool operator==(const ResultKey&) const = default;
};

std::string to_string(const ResultKey& key);

/// The inverse of to_string(). Throws InputError for any text that to_string() does not produce, and for an empty name.
ResultKey parse_result_key(const std::string& text);

/// A total order that follows the computation, so that the first wrong result is close to the fault. By step; then
/// forward and output by (micro-batch, stage); loss by micro-batch; backward, partial, input-grad, hook-calls and
/// accumulated by (micro-batch, stage descending); grad; grad-norm; buffer; param; optimizer-state. Remaining ties are
/// decided by kind, then by name. A stage or micro-batch that does not apply counts as the last one.
bool causal_less(const ResultKey& a, const ResultKey& b);

}  // namespace plumbline::reference
