// The recorder behind trace_joint(): records the operator calls that arrive below autograd as nodes of a joint graph.
//
// The calls are functionalised (functional_tensors.h), so the tensors that arrive here are never written. A tensor is
// identified by its TensorImpl, held weakly, as in runtime/capture/recorder.h. Two operators need special treatment:
//   * native_batch_norm writes its running statistics, which its schema does not declare. In training, and if it has
//     running statistics, it is recorded as _native_batch_norm_legit_functional, whose last two results then represent
//     them. Otherwise it is recorded as it is.
//   * bernoulli_ arrives as bernoulli.p. That draws in the order of indices; bernoulli_ draws in the order of memory,
//     except on a CPU where LibTorch leaves it to MKL (found out by one trial). If it draws in the order of memory, and
//     that is not the order of the tensor's indices, bernoulli.p is recorded between two permutations, unless the
//     program itself called bernoulli.p (set_called()).
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

/// Not thread-safe: one recorder serves one thread. Node indices are those of the recording; finish() renumbers.
class JointRecorder : public capture::Interposer {
 public:
  /// Adds `tensor` as a Primal or Tangent, named primals_N or tangents_N.
  NodeIndex add_input(JointKind kind, const at::Tensor& tensor);
  /// Declares a constant: the first call that reads `tensor` adds a GetAttr node of that name. Keeps a reference to
  /// `tensor`, which may share memory with other values.
  void add_constant(const std::string& name, const at::Tensor& tensor);
  /// Sets the mark of all calls recorded from now on; initially IsForward.
  void set_mark(JointMark mark) { mark_ = mark; }
  /// Sets the place in the program that runs now, for errors: "node 3 (%5 = aten::relu(%4))".
  void set_place(std::string place) { place_ = std::move(place); }
  /// Sets the operator that the program calls now, which may be composed of the recorded ones.
  void set_called(c10::OperatorName name) { called_ = std::move(name); }

  /// Runs and records one call. A call that only asks for shapes is not recorded. Throws CaptureError, and sets
  /// refusal(), if a joint graph cannot hold the call.
  void call(const c10::OperatorHandle& op, torch::jit::Stack* stack) override;

  /// Appends a node that call() did not record, and returns its index. Its arguments must be nodes of this recording.
  /// Its name must be unique and reserved (reserve_name()). `tensors` are its results: one tensor, or for a tuple one
  /// per item, undefined for None; for a getitem, the item of its tuple. They determine the storages of node.out and,
  /// unless it is a tuple, node.aliases_input; all other members stay as given. From then on node_of() returns the node
  /// for its tensor; for those of a tuple it returns the getitems, once they are added. Throws as refuse() does for a
  /// tensor that is not strided.
  NodeIndex add_node(JointNode node, std::span<const at::Tensor> tensors);
  /// Keeps `name` from being given to a recorded node.
  void reserve_name(const std::string& name) { names_.reserve(name); }
  /// All nodes so far. The caller may change them, except for the nodes among their arguments, and the shapes, strides
  /// and storages of their results.
  std::vector<JointNode>& nodes() { return graph_.nodes; }

  /// Returns the node whose value is `tensor`. If the recording has none, adds a GetAttr node: under its name for a
  /// tensor of add_constant(), else for a new constant, "_tensor_constantN". Throws as refuse() does if a tensor that
  /// would be a new constant shares memory with a recorded value, and for a tensor that is not strided.
  NodeIndex node_of(const at::Tensor& tensor);
  const JointNode& node(NodeIndex index) const { return graph_.nodes[index]; }

  /// Throws CaptureError with the current call, the place and `what`, and sets refusal().
  [[noreturn]] void refuse(const std::string& what);
  /// The text of the last refuse(). Kernels and the autograd engine may replace the exception by one of another type.
  const std::optional<std::string>& refusal() const { return refusal_; }

  /// Ends the recording. Call once and last: afterwards only constants() and refusal() are of use. The arguments are
  /// nodes of the recording; kNoNode stands for an output or a gradient that is None. Returns the graph with primals,
  /// then other inputs, first, without dead calls, and with FLOPs (joint_flops.h).
  JointGraph finish(const std::vector<NodeIndex>& forward_outputs, const std::vector<NodeIndex>& gradients);
  /// All constants, by JointNode::attribute; the finished graph may not use all of them.
  const std::map<std::string, at::Tensor>& constants() const { return constants_; }

 protected:
  /// Executes a call that is about to be recorded.
  virtual void carry_out(const c10::OperatorHandle& op, torch::jit::Stack* stack) { op.callBoxed(stack); }

 private:
  void record(const c10::OperatorHandle& op, torch::jit::Stack* stack);
  void record_batch_norm(torch::jit::Stack* stack);
  void record_bernoulli(const c10::OperatorHandle& op, torch::jit::Stack* stack);
  at::Tensor record_permute(const at::Tensor& tensor, const std::vector<int64_t>& order);
  bool knows(const at::Tensor& tensor) const { return values_.find(tensor).has_value(); }
  bool is_shape_query(const c10::OperatorHandle& op, const torch::jit::Stack& stack) const;
  void call_unrecorded(const c10::OperatorHandle& op, torch::jit::Stack* stack) const;
  void check(const c10::OperatorHandle& op, const torch::jit::Stack& stack);
  JointNode make_node(const c10::OperatorHandle& op, const torch::jit::Stack& stack);
  /// Returns the node of each result, by position; kNoNode for a result that is no tensor.
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
