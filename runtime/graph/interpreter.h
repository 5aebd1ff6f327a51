// Interpreter: runs a graph through the dispatcher, with autograd, as the model's own forward would.
//
// A call costs its kernels and little more: operators are resolved and constants boxed when the interpreter is made; a
// run copies the boxed constants to one reused stack, fills in the values, and calls. A value is released at its last
// use, so that memory falls as it does in the model's own forward.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "runtime/graph/graph.h"

namespace plumbline::graph {

class Interpreter;

/// Is shown each node of a run as it is carried out (to record shapes, to measure times).
class NodeObserver {
 public:
  virtual ~NodeObserver() = default;
  /// The values that the node reads are there; `node` is its index in the graph.
  virtual void before(size_t node, const Interpreter& values) = 0;
  /// The values that it defines are there, and what it read last is not gone yet unless it was moved into the call.
  virtual void after(size_t node, const Interpreter& values) = 0;
};

class Interpreter {
 public:
  /// Every attribute that the graph uses must hold a tensor; the tensors are shared, not copied.
  explicit Interpreter(const Graph& graph);

  /// Runs once. `inputs` are in the graph's order, with the captured dtypes and shapes (the caller checks them). A
  /// number among inputs and outputs is a tensor without dimensions. Gradients are recorded where they were recorded at
  /// capture and the caller's grad mode allows it. Writes one tensor for each graph output (undefined for None). An
  /// error of a kernel comes back as Error with the node's text. Not thread safe: one interpreter serves one thread at
  /// a time.
  void run(std::span<const at::Tensor> inputs, std::vector<at::Tensor>& outputs, NodeObserver* observer = nullptr);

  /// A value of the run under way, as an observer may ask for it.
  const c10::IValue& value(ValueId v) const { return slots_[v]; }

 private:
  using Slot = int32_t;
  struct Fill {
    uint32_t position;
    Slot slot;
    bool last_use;
    bool number_for_tensor;
  };
  struct ListFill {
    uint32_t position;
    Argument::Kind kind;
    std::vector<Slot> slots;
  };
  struct Instruction {
    size_t node;
    c10::OperatorHandle op;
    std::vector<c10::IValue> arguments;  // constants; None where a value is filled in
    std::vector<Fill> fills;
    std::vector<ListFill> list_fills;
    std::vector<Result> results;
    std::vector<Slot> released;  // slots that are dead after this instruction and were not moved into the call
    bool grad_enabled;
    int32_t autocast;
    std::vector<Interpreter> branches;  // of a cond
    std::string text;                   // for errors
  };

  void carry_out(NodeObserver* observer);
  void execute(Instruction& instruction);
  void fill(const Instruction& instruction);
  void choose_branch(Instruction& instruction);
  void clear();

  std::vector<Instruction> instructions_;
  std::vector<AutocastRegion> autocast_;
  std::vector<Slot> inputs_, outputs_;
  std::vector<ValueKind> input_kinds_, output_kinds_;
  std::vector<c10::IValue> slots_;
  std::vector<char> is_attribute_;  // by slot: survives the run
  std::vector<c10::IValue> stack_;
};

}  // namespace plumbline::graph
