// DetachExecutor: runs the root graph of a Pipe, forward and backward, on one device, after PyTorch's
// torch.distributed.pipelining (_IR.py).
//
// Every value that requires a gradient and enters a stage is detached once and made a leaf, so that each stage has a
// separate autograd graph, as if the stages were on different ranks; the calls of the root graph pass gradients from
// stage to stage. The executor knows neither schedule, transport nor micro-batches, and calls autograd itself, so it
// can judge the code that does. The executor itself is checked against the whole model (detach_executor_test.cc).
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "runtime/graph/run/program.h"
#include "runtime/split/pipe.h"

namespace plumbline::reference {

/// For use by one thread at a time. Does not refer to the Pipe after construction, but shares its captured tensors.
class DetachExecutor {
 public:
  /// Each stage gets a separate state (make_stage_state): the first stage that uses a parameter gets the captured
  /// tensor, the others get copies. `loss_output` is an index of the model's outputs (see find_loss); without it there
  /// is no backward. Throws InputError as root_graph() does.
  explicit DetachExecutor(const split::Pipe& pipe, std::optional<int> loss_output = std::nullopt);

  /// Returns the model's outputs (undefined for None). With a loss, adds gradients to the .grad of the stages'
  /// parameters, but not to that of the inputs. Throws InputError if the inputs differ in number, dtype or shape from
  /// those at capture, or if an input requires a gradient and did not at capture.
  std::vector<at::Tensor> run(const std::vector<at::Tensor>& inputs);
  /// The same with keyword inputs, named as at capture. Also throws InputError for missing, unknown and repeated names.
  std::vector<at::Tensor> run(const std::vector<at::Tensor>& positional,
                              const std::map<std::string, at::Tensor>& keyword);

  const graph::Graph& root() const { return root_; }
  const split::StageState& state(int stage) const { return states_.at(stage); }

  /// For the last run: the gradient of the model's input number `input`, summed over the stages that use it; undefined
  /// before a run, without a loss, and if the loss does not depend on the input.
  at::Tensor input_gradient(int input) const;
  /// For the last run: the gradient of the value that crosses pipe.boundaries[boundary], summed over the stages that
  /// take it; undefined before a run, without a loss, and if the loss does not depend on the value.
  at::Tensor boundary_gradient(int boundary) const;

 private:
  void check(const std::vector<at::Tensor>& inputs) const;
  const at::Tensor& leaf(graph::ValueId v);
  void call_stage(const graph::Node& node);
  void stage_backward(const graph::Node& node);
  void accumulate(const graph::Node& node);
  void separate_gradients();

  graph::Graph root_;
  std::vector<split::StageState> states_;
  std::vector<graph::Frame> stages_;
  std::vector<graph::ValueId> boundary_values_;
  // By value of the root.
  std::vector<at::Tensor> values_, leaves_, gradients_;
};

}  // namespace plumbline::reference
