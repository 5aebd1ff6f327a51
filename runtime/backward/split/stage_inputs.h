// StageInputs: the inputs of a stage in its autograd graph, where its backward ends, and the gradients that arrive
// there.
#pragma once

#include <torch/csrc/autograd/function.h>

#include <span>
#include <vector>

#include "runtime/backward/halved_node.h"

namespace plumbline::backward {

/// The gradient of a leaf arrives in its .grad, as in any backward; the constructor moves the earlier .grad aside. The
/// graph that computed a non-leaf input does not belong to the stage: edges to such an input are redirected to a node
/// that keeps the gradients which arrive.
class StageInputs {
 public:
  /// The tensors behind `inputs` must outlive this object.
  explicit StageInputs(std::span<const at::Tensor> inputs);
  /// Restores the leaves' .grad, unless take_grads() was called and succeeded.
  ~StageInputs();
  StageInputs(const StageInputs&) = delete;
  StageInputs& operator=(const StageInputs&) = delete;

  /// Whether no input requires a gradient.
  bool empty() const { return places_.empty(); }
  /// Whether `edge` leads to an input.
  bool contains(const torch::autograd::Edge& edge) const { return find(edge) != nullptr; }
  /// Whether an input that requires a gradient is no leaf, so that edges to it are redirected.
  bool redirects() const { return static_cast<bool>(catcher_); }
  /// Returns the replacement of an edge that leads to a non-leaf input, and any other edge unchanged.
  torch::autograd::Edge instead_of(const torch::autograd::Edge& edge) const;

  /// Writes the gradients that arrived to `grads`: one slot per input, undefined if none arrived and for the repetition
  /// of an earlier input. Restores the .grad of leaves and, with `accumulate`, adds the gradients to it (not in place).
  /// Call last: afterwards empty() is true.
  void take_grads(std::vector<at::Tensor>& grads, bool accumulate);

 private:
  struct Catcher;
  struct Place {
    torch::autograd::Node* node;
    uint32_t input_nr;
    int slot;    ///< index of the input
    int caught;  ///< index of the catcher's input; -1: the input is a leaf
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
