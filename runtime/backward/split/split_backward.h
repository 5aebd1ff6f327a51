// A stage's backward in two halves: first the gradients of the inputs (I), later the gradients of the parameters (W).
//
// Schedules with few bubbles (zero bubble, arXiv 2401.10241) run W where a rank would be idle. The interface follows
// `_backward.py` of PyTorch's torch.distributed.pipelining, the method does not: here the autograd graph is cut once,
// between the nodes from which an input can be reached (the first half) and the other nodes (the second half). So I
// followed by W executes every operation once and equals the full backward bitwise, even if a parameter is used in
// several places. See cut.h.
//
// Halves of different stages or micro-batches may run on different threads at the same time if their inputs are
// separate tensors, and a second half may run on another thread than its first half. Between the halves, parameters,
// inputs, root gradients and returned gradients must not change in place; the second half throws if a tensor that it
// needs has changed.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <memory>
#include <span>
#include <string>
#include <vector>

namespace plumbline::backward {

/// Parameters whose gradients are computed together, and the autograd nodes at which the first half kept their
/// gradients.
struct ParamGroup {
  std::vector<at::Tensor> params;
  std::vector<std::string> intermediates;  ///< autograd's names ("AddmmBackward0"), in the order of execution
};

/// The state that the first half leaves to the second: the rest of the graph, and the gradients that flow into it. Once
/// its second half has run, the object may be passed to another first half. Its destruction before the second half
/// drops the gradients and restores a retained graph.
class WeightBackward {
 public:
  WeightBackward();
  ~WeightBackward();
  WeightBackward(WeightBackward&&) noexcept;
  WeightBackward& operator=(WeightBackward&&) noexcept;

  /// True from the end of the first half until the second half has run or failed.
  bool pending() const;

  /// For inspection: the parameters of the second half. Those that share an intermediate are in one group, as in
  /// PyTorch's algorithm. Every leaf that requires a gradient and is not an input counts as a parameter. A parameter is
  /// in no group if none of the roots that depend on it depends on an input: the first half keeps no intermediate for
  /// it. Empty unless pending().
  std::vector<ParamGroup> groups() const;

  /// Bytes of the gradients kept for the second half, excluding autograd's saved values. A shared storage counts once;
  /// 0 unless pending().
  size_t held_bytes() const;

  struct State;

 private:
  std::unique_ptr<State> state_;
  friend State& state_of(WeightBackward&);
};

struct SplitBackwardOptions {
  /// Keep the graph: after the second half (or the destruction of the WeightBackward) it is whole again and may run
  /// another backward, split or full. Between the halves no other backward may run on it.
  bool retain_graph = false;
  /// Also add the gradients to the .grad of inputs that are leaves, as PyTorch's pipelining does (an input without a
  /// .grad gets the returned tensor itself). Otherwise the inputs' .grad is unchanged.
  bool accumulate_into_inputs = true;
};

/// The first half. Writes the gradients of `inputs` to `input_grads`, one slot per input: undefined for an input that
/// is undefined, requires no gradient or is not reached, and for the repetition of an earlier input. Leaves the
/// gradients of parameters unchanged. The graph that computed a non-leaf input belongs to other code and runs in
/// neither half; so if input b was computed from input a, the gradient of a lacks the contributions through b.
///
/// `roots` and `root_grads` are as for stage_backward(); aborts if their lengths differ. Roots that require no gradient
/// are omitted, a released output (released_output.h) may be a root, and an undefined gradient means 1 for a tensor of
/// one element that still has its memory. Unlike there, it is no error if no root remains or no input requires a
/// gradient: the second half then computes everything.
///
/// This half frees autograd's saved values node by node, except those that the second half needs. Afterwards another
/// backward from a root throws, unless the root is a leaf or an input. (A backward that begins elsewhere, such as at a
/// value computed from an output, is only detected when it meets freed values, at the latest in the second half.)
/// Users' hooks (on tensors, before and after nodes, after accumulation) run once in the two halves together.
///
/// Throws Error with the shapes of roots, gradients and inputs if `weights` is pending (nothing changes then), if a
/// gradient does not fit its root, or if autograd fails. After a failure the graph is as after a failed full backward,
/// without hooks of this function, and `weights` is not pending.
void stage_backward_input(std::span<const at::Tensor> roots, std::span<const at::Tensor> root_grads,
                          std::span<const at::Tensor> inputs, std::vector<at::Tensor>& input_grads,
                          WeightBackward& weights, const SplitBackwardOptions& options = {});

/// The result of the first half.
struct InputBackward {
  std::vector<at::Tensor> input_grads;
  WeightBackward weights;
};

/// The same for nested outputs, in the forms that stage_backward() takes.
InputBackward stage_backward_input(const c10::IValue& output, const c10::IValue& output_grad,
                                   const std::vector<c10::IValue>& inputs, const SplitBackwardOptions& options = {});

/// The second half: adds into the .grad of every parameter that the stage reaches, in the order of a full backward, and
/// frees the graph unless it is retained. Returns the resulting .grad of each tensor in `parameters`, undefined if it
/// has none; the list does not select what is computed. Throws Error if `weights` is not pending, if a kept gradient
/// was changed in place, or if autograd fails; `weights` is not pending afterwards.
std::vector<at::Tensor> stage_backward_weight(WeightBackward& weights, std::span<const at::Tensor> parameters = {});

/// Declares a user's autograd node that computes the gradients of its inputs and of its parameters separately, each
/// only on request (should_compute_output / needs_input_grad). The cut then runs the node once in each half and leaves
/// its parameters to the second half. Applies to every node whose name contains `part_of_name` ("MyLinear" matches
/// "torch::autograd::CppNode<MyLinear>"). Any other unknown node runs once, in the first half, and the second half only
/// accumulates its parameter gradients. Call before any backward; not thread-safe.
void add_divisible_node(std::string part_of_name);

}  // namespace plumbline::backward
