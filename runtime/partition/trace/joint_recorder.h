// The recorder behind trace_joint(): turns the operator calls that arrive below autograd into the nodes of a joint
// graph.
//
// What runs above is functionalised (functional_tensors.h), so the tensors that arrive here are never
// written: each is known by its TensorImpl, held weakly, as in runtime/capture/recorder.h. native_batch_norm is the
// exception, which writes its running statistics and does not say so; it becomes _native_batch_norm_legit_functional,
// and from then on its statistics are known as what that returns. And bernoulli_, which draws in the order of memory,
// arrives as bernoulli, which draws in that of the indices: it is recorded between two permutations.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "runtime/capture/interpose.h"
#include "runtime/capture/tensor_table.h"
#include "runtime/partition/joint/joint_graph.h"
#include "runtime/partition/joint/joint_names.h"

namespace plumbline::partition {

class JointRecorder : public capture::Interposer {
 public:
  NodeIndex add_input(JointKind kind, const at::Tensor& tensor);
  /// `tensor` becomes a GetAttr node of that name where a call reads it first.
  void add_constant(const std::string& name, const at::Tensor& tensor);
  /// The mark of what is recorded from now on.
  void set_mark(JointMark mark) { mark_ = mark; }
  /// What of the program is being carried out, for errors: "at %5 = aten::relu(%4)".
  void set_place(std::string place) { place_ = std::move(place); }
  /// What of the program is being carried out: an operator that may be composed of those that are recorded.
  void set_called(c10::OperatorName name) { called_ = std::move(name); }

  /// Throws CaptureError for what a trace cannot hold, and remembers it: see refusal().
  void call(const c10::OperatorHandle& op, torch::jit::Stack* stack) override;

  /// Takes a node over from elsewhere: its arguments are nodes of this recording, `tensors` its results (one, or one
  /// for each of a tuple's items, undefined where there is none; a getitem is to be given the tuple's). Its name must
  /// be reserved.
  NodeIndex adopt(JointNode node, std::span<const at::Tensor> tensors);
  void reserve_name(const std::string& name) { names_.reserve(name); }
  /// All nodes so far, for changes that leave their arguments and results alone.
  std::vector<JointNode>& nodes() { return graph_.nodes; }

  /// The node whose value `tensor` is; a constant is made of one that no call has made.
  NodeIndex node_of(const at::Tensor& tensor);
  const JointNode& node(NodeIndex index) const { return graph_.nodes[index]; }

  [[noreturn]] void refuse(const std::string& what);
  /// What was refused: on its way up through kernels and engine an exception may change its type.
  const std::optional<std::string>& refusal() const { return refusal_; }

  /// Ends the recording. Inputs come first in the graph, and dead calls are removed.
  JointGraph finish(const std::vector<NodeIndex>& forward_outputs, const std::vector<NodeIndex>& gradients);
  /// By JointNode::attribute; some may be in no use.
  const std::map<std::string, at::Tensor>& constants() const { return constants_; }

 protected:
  /// Runs a call that is about to be recorded.
  virtual void carry_out(const c10::OperatorHandle& op, torch::jit::Stack* stack) { op.callBoxed(stack); }

 private:
  void record(const c10::OperatorHandle& op, torch::jit::Stack* stack);
  void record_batch_norm(torch::jit::Stack* stack);
  void record_bernoulli(const c10::OperatorHandle& op, torch::jit::Stack* stack);
  at::Tensor record_permute(const at::Tensor& tensor, const std::vector<int64_t>& order);
  bool knows(const at::Tensor& tensor) const { return values_.find(tensor).has_value(); }
  bool is_about_shapes(const c10::OperatorHandle& op, const torch::jit::Stack& stack) const;
  void answer(const c10::OperatorHandle& op, torch::jit::Stack* stack) const;
  void check(const c10::OperatorHandle& op, const torch::jit::Stack& stack);
  JointNode describe(const c10::OperatorHandle& op, const torch::jit::Stack& stack);
  /// The nodes of the results, by position; kNoNode where there is no tensor.
  std::vector<NodeIndex> add_call(JointNode node, const c10::OperatorHandle& op, const torch::jit::Stack& stack);
  JointResult result_of(const at::Tensor& tensor);
  NodeIndex add(JointNode node);
  int32_t storage_number(const at::Tensor& tensor);

  JointGraph graph_;
  JointNames names_;
  JointMark mark_ = JointMark::IsForward;
  std::string place_;
  std::optional<c10::OperatorName> called_;
  const c10::OperatorHandle* op_ = nullptr;
  std::optional<std::string> refusal_;
  capture::TensorTable values_;
  std::unordered_map<const c10::TensorImpl*, std::string> named_constants_;
  std::map<std::string, at::Tensor> constants_;
  capture::StorageTable storages_;
  std::vector<NodeIndex> storage_primal_;  ///< by storage: the first primal in it
};

}  // namespace plumbline::partition
