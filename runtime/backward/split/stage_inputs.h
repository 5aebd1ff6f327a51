// The inputs of a stage in its autograd graph: where the stage ends, and the gradients that arrive there.
#pragma once

#include <torch/csrc/autograd/function.h>

#include <span>
#include <vector>

#include "runtime/backward/halved_node.h"

namespace plumbline::backward {

/// A leaf's gradient arrives in its .grad, as in any backward, which is empty while this object lives. What lies before
/// an input that is no leaf is not the stage's: edges to it are led to a node of ours instead.
class StageInputs {
 public:
  explicit StageInputs(std::span<const at::Tensor> inputs);
  /// Puts the leaves' .grad back as they were, unless take_grads() was called and succeeded.
  ~StageInputs();
  StageInputs(const StageInputs&) = delete;
  StageInputs& operator=(const StageInputs&) = delete;

  /// No input requires a gradient.
  bool empty() const { return places_.empty(); }
  /// Whether `edge` leads to an input.
  bool contains(const torch::autograd::Edge& edge) const { return find(edge) != nullptr; }
  /// Some input is no leaf: edges to it have another to take in their stead.
  bool redirects() const { return static_cast<bool>(catcher_); }
  /// `edge`, or, where it leads to an input that is no leaf, the edge to take in its stead.
  torch::autograd::Edge instead_of(const torch::autograd::Edge& edge) const;

  /// What arrived: one slot an input, the first where a tensor stands twice. `accumulate`: also added into the .grad of
  /// leaves, which is as it was otherwise. To be called last: the object knows no inputs any more.
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
  std::vector<NodeHandle> nodes_;         // keeps accumulators alive: leaves do not
  std::vector<at::Tensor> grads_before_;  // by place
  NodeHandle catcher_;
};

}  // namespace plumbline::backward
