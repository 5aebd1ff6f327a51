// Program and Frame: a graph executed through the dispatcher, with autograd, as the model's own forward would be.
//
// A Program binds a graph once: operators are resolved, constants boxed, last uses found. It is immutable, so threads
// share it without a lock. A Frame holds the values of one run. A call then costs its kernel and little more: the run
// copies the boxed constants to one reused stack, fills in the values, and calls. A value is released at its last use,
// so that memory falls as it does in the model's own forward.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/graph/graph.h"

namespace plumbline::graph {

class Frame;

/// Observes each node of a run (to record shapes, to measure times).
class NodeObserver {
 public:
  virtual ~NodeObserver() = default;
  /// The values that the node reads are present; `node` is its index in the graph.
  virtual void before(size_t node, const Frame& values) = 0;
  /// The values that it defines are present. A value that it read last is still present unless it was moved into the
  /// call.
  virtual void after(size_t node, const Frame& values) = 0;
};

/// How nodes of one graph execute, beside what the graph itself says.
struct ExecutionHints {
  /// A call whose random numbers are drawn again elsewhere: see RandomStates.
  struct Replayed {
    size_t node;
    size_t state;        ///< its place among the random states
    c10::Device device;  ///< whose default generator it draws from
  };
  /// A call that may write its result into the memory of an argument, if the call is the last owner of that memory.
  struct Overwriting {
    size_t node;
    uint32_t argument;
    c10::OperatorHandle op;  ///< the same operator with a further, last argument: where to write
  };
  std::vector<Replayed> replayed = {};
  size_t states = 0;  ///< how many a run records
  std::vector<Overwriting> overwriting = {};
  /// By node: its name in errors; empty: each node's text.
  std::vector<std::string> labels = {};
};

/// The states of the default generators before replayed calls: recorded by one run, replayed by another, which must not
/// lie inside a RandomTurn.
struct RandomStates {
  enum class Mode : uint8_t { Record, Replay };
  Mode mode = Mode::Record;
  std::vector<at::Tensor>* states = nullptr;
};

class Program {
 public:
  /// Every attribute that the graph uses must hold a tensor; the tensors are shared, not copied.
  explicit Program(const Graph& graph, ExecutionHints hints = {});

  /// Runs once in a frame of its own: see Frame::run().
  void run(std::span<const at::Tensor> inputs, std::vector<at::Tensor>& outputs,
           NodeObserver* observer = nullptr) const;

 private:
  friend class Frame;
  friend struct Execution;
  struct Code;
  std::shared_ptr<const Code> code_;
};

/// The values of a run. A frame that is kept serves one run after another without allocating; a run belongs to one
/// thread.
class Frame {
 public:
  explicit Frame(Program program);

  /// Runs once. `inputs` are in the graph's order, with the captured dtypes and shapes (the caller checks them). A
  /// number among inputs and outputs is a tensor without dimensions. Gradients are recorded where they were recorded at
  /// capture and the caller's grad mode allows it. Writes one tensor for each graph output (undefined for None). An
  /// error of a kernel becomes an Error with the node's text.
  void run(std::span<const at::Tensor> inputs, std::vector<at::Tensor>& outputs, NodeObserver* observer = nullptr);
  /// The same, but each input is released at its last use. Replayed calls record or replay `random`.
  void run(std::vector<at::Tensor>&& inputs, std::vector<at::Tensor>& outputs, const RandomStates& random);

  /// A value of the run in progress, for an observer.
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
