// The inputs of a stage in its autograd graph: the end of the stage, and the gradients that arrive there.
#pragma once

#include <torch/csrc/autograd/function.h>

#include <span>
#include <vector>

#include "runtime/backward/halved_node.h"

namespace plumbline::backward {

/// A leaf's gradient arrives in its .grad, as in any backward; .grad is empty while this object lives. The graph before
/// an input that is no leaf is not the stage's: edges to it are redirected to a node of ours.
class StageInputs {
 public:
  explicit StageInputs(std::span<const at::Tensor> inputs);
  /// Restores the leaves' .grad, unless take_grads() was called and succeeded.
  ~StageInputs();
  StageInputs(const StageInputs&) = delete;
  StageInputs& operator=(const StageInputs&) = delete;

  /// No input requires a gradient.
  bool empty() const { return places_.empty(); }
  /// Whether `edge` leads to an input.
  bool contains(const torch::autograd::Edge& edge) const { return find(edge) != nullptr; }
  /// Whether some input is no leaf, so that edges to it are redirected.
  bool redirects() const { return static_cast<bool>(catcher_); }
  /// `edge` or, if it leads to an input that is no leaf, its replacement.
  torch::autograd::Edge instead_of(const torch::autograd::Edge& edge) const;

  /// The gradients that arrived: one slot per input, the first slot for a tensor that appears twice. `accumulate`: also
  /// adds them into the .grad of leaves, which is otherwise restored. Call it last: it clears the list of inputs.
  void take_grads(std::vector<at::Tensor>& grads, bool accumulate);

 private:
  struct Catcher;
  struct Place {
    torch::autograd::Node* node;
    uint32_t input_nr;
    int slot;    ///< among the inputs
    int caught;  ///< the catcher's input; -1: a leaf
    bool operator<(const Place& other) const {
      return std::tie(node, input_nr, slot) < std::tie(other.node, other.input_nr, other.slot);
    }
  };
  const Place* find(const torch::autograd::Edge& edge) const;
  void put_back();

  std::span<const at::Tensor> inputs_;
  std::vector<Place> places_;             // sorted, distinct in node and input_nr
  std::vector<NodeHandle> nodes_;         // keeps accumulators alive, which leaves do not
  std::vector<at::Tensor> grads_before_;  // by place
  NodeHandle catcher_;
};

}  // namespace plumbline::backward
