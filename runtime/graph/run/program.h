// Program and Frame: execute a graph through the dispatcher, with autograd, as the model's own forward would run.
//
// A Program prepares a graph once: it resolves operators, boxes constants and finds last uses. A Program is immutable,
// so threads share it without a lock. A Frame holds the values of one run. A call costs little more than its kernel:
// the run copies the boxed constants to one reused stack, fills in the values, and calls. A value is released at its
// last use, so that memory is freed as in the model's own forward.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/graph/graph.h"

namespace plumbline::graph {

class Frame;

/// Observes the nodes of a run (to record shapes, to measure times), without split markers and nodes inside branches.
/// An exception of an observer is treated as an exception of the node's kernel.
class NodeObserver {
 public:
  virtual ~NodeObserver() = default;
  /// Called before a node, when the values that it reads are present. `node` is the index in Graph::nodes.
  virtual void before(size_t node, const Frame& values) = 0;
  /// Called after a node, when the values that it defines are present. A value whose last use was this node is still
  /// present unless it was moved into the call.
  virtual void after(size_t node, const Frame& values) = 0;
};

/// Instructions for the execution of a graph's nodes that are not part of the graph. `node` is an index in
/// Graph::nodes.
struct ExecutionHints {
  /// A random call that two graphs execute, with the same random numbers in both; see RandomStates.
  struct Replayed {
    size_t node;
    size_t state;        ///< index in RandomStates::states
    c10::Device device;  ///< the call draws from this device's default generator
  };
  /// A call that may write its result into the memory of argument number `argument`, if the call is the last owner of
  /// that memory.
  struct Overwriting {
    size_t node;
    uint32_t argument;
    c10::OperatorHandle op;  ///< the same operator with an additional last argument: the tensor to write
  };
  std::vector<Replayed> replayed = {};
  size_t states = 0;  ///< the number of random states that a run records
  std::vector<Overwriting> overwriting = {};
  /// By node: its name in errors; empty: the text form of each node.
  std::vector<std::string> labels = {};
};

/// The states of the default generators before replayed calls: recorded by one run (which resizes `states`), replayed
/// by another run, which must not be inside a RandomTurn. Null `states`: calls draw as usual.
struct RandomStates {
  enum class Mode : uint8_t { Record, Replay };
  Mode mode = Mode::Record;
  std::vector<at::Tensor>* states = nullptr;
};

class Program {
 public:
  /// Does not refer to `graph` afterwards; attribute tensors are shared. Every attribute that the graph uses must hold
  /// a tensor.
  explicit Program(const Graph& graph, ExecutionHints hints = {});

  /// Runs once in a new frame; see Frame::run().
  void run(std::span<const at::Tensor> inputs, std::vector<at::Tensor>& outputs,
           NodeObserver* observer = nullptr) const;

 private:
  friend class Frame;
  friend struct Execution;
  struct Code;
  std::shared_ptr<const Code> code_;
};

/// The values of a run. One frame serves any number of runs, one after another, and keeps its vectors. Not thread-safe.
class Frame {
 public:
  explicit Frame(Program program);

  /// Runs once. `inputs` are in the order of Graph::inputs, with the captured dtypes and shapes, which are not checked.
  /// A number among inputs and outputs is a tensor without dimensions. A call records gradients if it did at capture
  /// and the caller's grad mode is enabled. Writes one tensor for each graph output, undefined for None. An exception
  /// of a kernel becomes Error with the node's label; c10::Error for an input that holds no single number where one is
  /// needed. The frame then drops the values of the run and may run again.
  void run(std::span<const at::Tensor> inputs, std::vector<at::Tensor>& outputs, NodeObserver* observer = nullptr);
  /// The same, but takes the inputs over and releases each of them at its last use; `inputs` is empty afterwards.
  /// Replayed calls record or replay `random`.
  void run(std::vector<at::Tensor>&& inputs, std::vector<at::Tensor>& outputs, const RandomStates& random);

  /// A value of the current run, for an observer; None if it is not present.
  const c10::IValue& value(ValueId v) const { return slots_[v]; }

 private:
  friend struct Execution;
  struct Run;

  template <class Tensors, class Take>
  void bind_inputs(Tensors& inputs, const Take& take);
  void execute(const Run& run);
  void take_outputs(std::vector<at::Tensor>& outputs);
  void clear();

  Program program_;
  std::vector<c10::IValue> slots_;  // by ValueId
  std::vector<c10::IValue> stack_;
  std::vector<Frame> branches_;  // two for each cond: for true and for false
};

}  // namespace plumbline::graph
