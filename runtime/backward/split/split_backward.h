// A stage's backward in two halves: the gradients of its inputs now (I), those of its parameters later (W).
//
// After the seed `_backward.py` of PyTorch's torch.distributed.pipelining, for schedules that fill bubbles with weight
// gradients (zero bubble, arXiv 2401.10241). The method differs: the autograd graph is cut once, between the nodes from
// which an input can be reached (exactly the first half) and the rest (the second half). So I followed by W executes
// every operation once, and equals the full backward bitwise even if a parameter is used in several places. See cut.h.
//
// Halves of different stages or micro-batches may run on different threads at the same time (with separate inputs), and
// the second half on another thread than the first. Between the halves parameters, inputs, root gradients and the
// returned gradients may not change in place: the second half throws if they did.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <memory>
#include <span>
#include <string>
#include <vector>

namespace plumbline::backward {

/// Parameters whose gradients are computed together, and the autograd nodes at which gradients for them were kept.
struct ParamGroup {
  std::vector<at::Tensor> params;
  std::vector<std::string> intermediates;  ///< autograd's names ("AddmmBackward0"), in the order of execution
};

/// The state that the first half leaves to the second: the rest of the graph, and the gradients that flow into it.
/// Reusable: a first half may get one that was run. Destroyed without having been run, it drops the gradients (and
/// restores a retained graph).
class WeightBackward {
 public:
  WeightBackward();
  ~WeightBackward();
  WeightBackward(WeightBackward&&) noexcept;
  WeightBackward& operator=(WeightBackward&&) noexcept;

  /// True from the first half until the second has run.
  bool pending() const;

  /// For inspection: parameters that share an intermediate are in one group, as in the seed's algorithm. Every leaf
  /// that requires a gradient and is no input counts as a parameter. Empty when not pending.
  std::vector<ParamGroup> groups() const;

  /// Bytes of the gradients kept for the second half (without autograd's saved values). Shared memory counts once.
  size_t held_bytes() const;

  struct State;

 private:
  std::unique_ptr<State> state_;
  friend State& state_of(WeightBackward&);
};

struct SplitBackwardOptions {
  /// Keep the graph: after the second half (or the destruction of the WeightBackward) it is whole again, for another
  /// backward, split or full. Between the halves no other backward may run on it.
  bool retain_graph = false;
  /// Also add the gradients to the .grad of inputs that are leaves, as the seed does (the first one then is .grad
  /// itself). Otherwise .grad is unchanged.
  bool accumulate_into_inputs = true;
};

/// The first half: the gradients of `inputs`, one slot per input, undefined for an input that is undefined, requires no
/// gradient or is not reached (a tensor that appears twice has its gradient in its first slot). No gradient of a
/// parameter is touched. The graph before an input that is no leaf belongs to other code, and runs in neither half (so
/// an input that precedes another one misses contributions through it).
///
/// `roots`, `root_grads` as for stage_backward(): roots that require no gradient are left out, a released output
/// (released_output.h) is a normal root, an undefined gradient means 1 for a scalar that still has its memory. Unlike
/// there, having no root at all, or no input that requires a gradient, is no error: then everything is left to the
/// second half.
///
/// Autograd's saved values are freed node by node as this half runs, except those that the second half needs.
/// Afterwards the roots are poisoned, except leaves and inputs: another backward from them throws. (One that begins
/// elsewhere, at a value computed from an output before, say, is only noticed where it meets freed values, at the
/// latest in the second half.) Users' hooks (on tensors, before and after nodes, after accumulation) run once in the
/// two halves together. After an exception no hook of ours is left in the graph; the graph is as after a failed full
/// backward. Throws Error with the shapes of roots, gradients and inputs.
void stage_backward_input(std::span<const at::Tensor> roots, std::span<const at::Tensor> root_grads,
                          std::span<const at::Tensor> inputs, std::vector<at::Tensor>& input_grads,
                          WeightBackward& weights, const SplitBackwardOptions& options = {});

struct InputBackward {
  std::vector<at::Tensor> input_grads;
  WeightBackward weights;
};

/// The same for nested outputs, as stage_backward() takes them.
InputBackward stage_backward_input(const c10::IValue& output, const c10::IValue& output_grad,
                                   const std::vector<c10::IValue>& inputs, const SplitBackwardOptions& options = {});

/// The second half: adds into the .grad of every parameter that the stage reaches, in the order of a full backward, and
/// frees the graph (unless it is retained). Returns the .grad of each of `of` after that, undefined if there is none.
/// Throws Error when the first half was not run or the second was already.
std::vector<at::Tensor> stage_backward_weight(WeightBackward& weights, std::span<const at::Tensor> of = {});

/// Declares a user's autograd node that computes the gradients of its inputs and of its parameters separately, each
/// only on request (should_compute_output / needs_input_grad): the cut then leaves its parameters to the second half
/// and runs it once for each half. `part_of_name` is searched for in the node's name ("MyLinear" finds
/// "torch::autograd::CppNode<MyLinear>"). Any other unknown node runs once, in the first half, and the second half adds
/// its gradients. Call before any backward; not thread-safe.
void add_divisible_node(std::string part_of_name);

}  // namespace plumbline::backward
