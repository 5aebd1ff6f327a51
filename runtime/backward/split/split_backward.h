// A stage's backward in two halves: the gradients of its inputs now (I), those of its parameters later (W).
//
// After the seed `_backward.py` of PyTorch's torch.distributed.pipelining, for schedules that fill bubbles with weight
// gradients (zero bubble, arXiv 2401.10241). The method is another one: the autograd graph is cut once, between the
// nodes from which an input can be reached (the first half runs exactly those) and the rest (the second half), so I
// followed by W executes every operation once, and gives the bits of the full backward also where a parameter is used
// in several places. See cut.h.
//
// Two halves of different stages or micro-batches may run on different threads at the same time (with inputs of their
// own), and the second half on another thread than the first. Between the halves parameters, inputs, root gradients and
// the gradients that were returned may not change in place: the second half throws when they did.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <memory>
#include <span>
#include <string>
#include <vector>

namespace plumbline::backward {

/// Parameters whose gradients are made together, and the autograd nodes at which the gradients for them were kept.
struct ParamGroup {
  std::vector<at::Tensor> params;
  std::vector<std::string> intermediates;  ///< names as autograd has them ("AddmmBackward0"), in the order of execution
};

/// What the first half leaves to the second: the rest of the graph, and the gradients that flow into it. Reusable: a
/// first half may be given one that is spent. When it is destroyed without having been run, the gradients are not made
/// (and a graph that was retained is put back).
class WeightBackward {
 public:
  WeightBackward();
  ~WeightBackward();
  WeightBackward(WeightBackward&&) noexcept;
  WeightBackward& operator=(WeightBackward&&) noexcept;

  /// True from the first half until the second was run.
  bool pending() const;

  /// For inspection: parameters that share an intermediate are in one group, as the seed's algorithm groups them. Every
  /// leaf that requires a gradient and is no input counts as a parameter. Empty when not pending.
  std::vector<ParamGroup> groups() const;

  /// Bytes of the gradients kept for the second half (without what autograd saved for it). Each memory counts once.
  size_t held_bytes() const;

  struct State;

 private:
  std::unique_ptr<State> state_;
  friend State& state_of(WeightBackward&);
};

struct SplitBackwardOptions {
  /// Keep the graph: after the second half (or after the WeightBackward was destroyed) it is whole again, for another
  /// backward, split or full. Between the halves no other backward may run on it.
  bool retain_graph = false;
  /// Add the gradients to the .grad of inputs that are leaves as well, as the seed has it (the first one is .grad
  /// itself then). Otherwise .grad stays as it was.
  bool accumulate_into_inputs = true;
};

/// The first half: the gradients of `inputs`, one slot an input, undefined for what is undefined, requires no gradient
/// or is not reached (a tensor that stands twice has its gradient in the first of its slots). No gradient of a
/// parameter is touched. What lies before an input that is no leaf belongs to somebody else, and runs in neither half
/// (so an input that lies before another one misses what comes through that).
///
/// `roots`, `root_grads` as for stage_backward(): roots that require no gradient are left out, a released output
/// (released_output.h) is one like any other, an undefined gradient stands for 1 on a scalar that still has its memory.
/// Unlike there, no root at all, or no input that requires a gradient, is no error: then everything is left to the
/// second half.
///
/// What autograd saved is freed node by node as this half runs, but for what the second half needs. Afterwards the
/// roots are poisoned, but for leaves and inputs: another backward from them throws. (One that begins elsewhere, at
/// what was made of an output before, say, is only noticed where it meets what was freed, at the latest in the second
/// half.) Hooks of users (on tensors, before and after nodes, after accumulation) run once in the two halves together.
/// After an exception no hook of ours is left in the graph; the graph is as after a full backward that failed. Throws
/// Error with the shapes of roots, gradients and inputs.
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

/// The second half: adds into the .grad of every parameter that the stage reaches, in the order in which a full
/// backward would have added, and frees the graph (unless it is retained). Returns the .grad of each of `of` after
/// that, undefined where there is none. Throws Error when the first half was not run or the second was already.
std::vector<at::Tensor> stage_backward_weight(WeightBackward& weights, std::span<const at::Tensor> of = {});

/// A user's autograd node that computes the gradients of its inputs and those of its parameters apart, each only when
/// asked for (should_compute_output / needs_input_grad): the cut then leaves its parameters to the second half and runs
/// it once for each half. `part_of_name` is looked for in the node's name ("MyLinear" finds
/// "torch::autograd::CppNode<MyLinear>"). Any other node that is not known to do so runs once, in the first half, and
/// the second half adds what it made. Call before any backward; not thread-safe.
void add_divisible_node(std::string part_of_name);

}  // namespace plumbline::backward
