// The recorder behind capture(): turns the calls reported by the dispatcher into nodes of a graph.
#pragma once

#include <ATen/core/stack.h>

#include <unordered_map>

#include "runtime/capture/capture.h"
#include "runtime/capture/tensor_table.h"
#include "runtime/graph/graph.h"
#include "runtime/graph/run/kept_tensors.h"

namespace plumbline::capture {

/// The destructor restores the parameters that forward wrote in place.
class Recorder {
 public:
  /// `parameters` and `buffers` under their qualified names, a tied tensor under each of its names (the first becomes
  /// the attribute's name, the others its aliases). Throws CaptureError for an input that is undefined, occurs twice,
  /// or is a parameter or buffer.
  Recorder(const std::vector<NamedTensor>& parameters, const std::vector<NamedTensor>& buffers,
           const std::vector<NamedTensor>& inputs);
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  /// Called around one operator: before() with its arguments on the stack, after() with its results. before() throws
  /// CaptureError for a call that a replay would not repeat.
  void before(const c10::OperatorHandle& op, const torch::jit::Stack& stack);
  void after(const c10::OperatorHandle& op, const torch::jit::Stack& stack);

  /// Throws CaptureError with the current operator, its node number, the current module and `what`.
  [[noreturn]] void refuse(const std::string& what) const;

  /// `name`: the qualified name in the root module ("" for the root itself). `type`: the module's class.
  void enter_module(const std::string& name, const std::string& type);
  void leave_module();

  /// Ends the recording and returns the graph; call last. An undefined output becomes kNoValue. An unknown tensor
  /// becomes a constant, or is refused by CaptureError if it requires a gradient or shares memory with a value that
  /// varies.
  graph::Graph finish(const std::vector<at::Tensor>& outputs);

 private:
  struct Known {  // facts about a value beyond its entry in the graph
    /// Only compared; null for a view, whose grad_fn LibTorch renews.
    const torch::autograd::Node* grad_fn;
    bool requires_grad;
    /// Derived from an input, a parameter or a random draw, so the dispatcher must see every path of its memory to the
    /// graph.
    bool varies;
    /// Recorded as the memory that empty() made, or as a view of it: as long as no recorded call has written there, a
    /// replay would find no content.
    bool unfilled = false;
  };
  struct Registered {  // a parameter's or buffer's state before forward
    bool requires_grad;
    int32_t storage;
  };

  void add_attributes(const std::vector<NamedTensor>& tensors, graph::AttributeKind kind);
  graph::ValueId define(const at::Tensor& tensor, bool varies);
  /// The value of a tensor. If its content is read and no recorded call has written it, the tensor becomes a constant.
  graph::ValueId use(const at::Tensor& tensor, bool reads = true);
  graph::ValueId use_unknown(const at::Tensor& tensor);
  graph::ValueId add_constant(const at::Tensor& tensor);
  bool is_unfilled(graph::ValueId value) const;
  graph::Argument argument(const c10::IValue& value, const c10::Argument& parameter, bool reads);
  /// to(), reshape() and others return a view or a copy of an argument. Has the node read unfilled memory as a constant
  /// if the call has copied it.
  void read_what_was_copied(graph::Node& node, const torch::jit::Stack& stack);
  /// Refuses writes that a replay would not repeat, and saves a parameter's content before its first write.
  void before_write(int32_t storage);
  /// Records the effect of a write on the gradients of the values in that memory.
  void after_write(int32_t storage);
  int32_t storage_number(const at::Tensor& tensor);

  graph::Graph graph_;
  std::vector<Known> known_;
  TensorTable values_;
  std::unordered_map<const c10::TensorImpl*, size_t> attributes_;
  std::vector<Registered> registered_;
  graph::KeptTensors written_parameters_;  // an embedding with max_norm writes its own; restored by the destructor
  StorageTable storages_;
  std::vector<char> storage_varies_;
  std::vector<char> storage_unwritten_;  // made by empty(), and no recorded call wrote to it yet
  std::vector<size_t> open_modules_;
  graph::Node pending_;
  std::vector<std::pair<graph::ValueId, at::Tensor>> pending_unfilled_;  // arguments of pending_ that are not read
  bool pending_varies_ = false;
};

/// Records the calls of this thread for the lifetime of the scope. Scopes must not nest; `recorder` must outlive the
/// scope.
class RecordingScope {
 public:
  explicit RecordingScope(Recorder& recorder);
  ~RecordingScope();
  RecordingScope(const RecordingScope&) = delete;
  RecordingScope& operator=(const RecordingScope&) = delete;
};

}  // namespace plumbline::capture
