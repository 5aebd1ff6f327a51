#include "runtime/graph/run/program.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/scalar_tensor.h>

#include <algorithm>
#include <map>
#include <utility>

#include "runtime/error.h"
#include "runtime/graph/error_text.h"
#include "runtime/graph/io/text.h"
#include "runtime/graph/run/autocast_scope.h"
#include "runtime/graph/run/boxed_arguments.h"
#include "runtime/graph/run/random_replay.h"
#include "runtime/graph/wrapped_number.h"

namespace plumbline::graph {
namespace {

/// Changes the thread's grad mode only when it differs, and restores it.
class GradModeScope {
 public:
  GradModeScope() : ambient_(c10::GradMode::is_enabled()), current_(ambient_) {}
  ~GradModeScope() {
    if (current_ != ambient_) c10::GradMode::set_enabled(ambient_);
  }
  GradModeScope(const GradModeScope&) = delete;
  GradModeScope& operator=(const GradModeScope&) = delete;
  void set(bool captured) {
    const bool wanted = ambient_ && captured;
    if (wanted == current_) return;
    c10::GradMode::set_enabled(wanted);
    current_ = wanted;
  }

 private:
  bool ambient_, current_;
};

c10::IValue number_in(const at::Tensor& tensor, ValueKind kind) {
  if (kind == ValueKind::Int) return tensor.item<int64_t>();
  if (kind == ValueKind::Bool) return tensor.item<bool>();
  return tensor.item<double>();
}

/// Whether a call is the last owner of an argument and of its memory. (The caller may still hold a gradient.)
bool is_sole_owner(const c10::IValue& argument) {
  const at::Tensor& tensor = argument.toTensor();
  return tensor.use_count() == 1 && tensor.storage().use_count() == 1 && tensor.is_contiguous();
}

}  // namespace

struct Fill {
  uint32_t position;
  ValueId value;
  bool last_use;  // moved into the call
  bool number_for_tensor;
};

struct ListFill {
  uint32_t position;
  Argument::Kind kind;
  std::vector<ValueId> values;
};

struct Instruction {
  size_t node;
  c10::OperatorHandle op;
  std::vector<c10::IValue> arguments = {};  // constants; None where a value is filled in
  std::vector<Fill> fills = {};
  std::vector<ListFill> list_fills = {};
  std::vector<Result> results = {};
  std::vector<ValueId> released = {};  // dead after this instruction, and not moved into it
  bool grad_enabled = true;
  int32_t autocast = -1;
  int32_t branches = -1;  // of a cond: its first frame among the branches
  int32_t state = -1;     // of a replayed call: which of the random states
  c10::Device device = c10::kCPU;
  int32_t overwritten = -1;  // which argument the result may overwrite, once that is moved into the call
  std::optional<c10::OperatorHandle> overwriting = {};
  std::string label = {};  // for errors
};

namespace {

/// How long the values of a graph live.
class Lifetimes {
 public:
  explicit Lifetimes(const Graph& graph) : outlives_(graph.values.size(), 0), last_reader_(graph.values.size(), -1) {
    for (size_t i = 0; i < graph.nodes.size(); ++i)
      for_each_use(graph.nodes[i], [&](ValueId v) { last_reader_[v] = static_cast<int64_t>(i); });
    for (const Attribute& attribute : graph.attributes)
      if (attribute.value != kNoValue) outlives_[attribute.value] = 1;
    for (const ValueId v : graph.outputs)
      if (v != kNoValue) outlives_[v] = 1;
  }

  /// By a node or as an output; true for attributes.
  bool is_read(ValueId v) const { return outlives_[v] || last_reader_[v] >= 0; }
  /// Whether `node` is the last reader, and the value is neither an attribute nor an output.
  bool ends_at(ValueId v, size_t node) const { return !outlives_[v] && last_reader_[v] == static_cast<int64_t>(node); }

 private:
  std::vector<char> outlives_;  // the last node: an attribute or an output
  std::vector<int64_t> last_reader_;
};

void bind_arguments(const Graph& graph, const Lifetimes& lifetimes, Instruction& in) {
  const Node& node = graph.nodes[in.node];
  const std::vector<c10::Argument>& parameters = node.op->schema().arguments();
  std::map<ValueId, int> uses;
  for_each_use(node, [&](ValueId v) { ++uses[v]; });
  in.arguments.resize(node.arguments.size());
  for (size_t a = 0; a < node.arguments.size(); ++a) {
    const Argument& argument = node.arguments[a];
    const auto position = static_cast<uint32_t>(a);
    if (argument.kind == Argument::Kind::Constant) {
      in.arguments[a] = boxed_constant(argument.constant, *parameters[a].type());
    } else if (argument.kind == Argument::Kind::Value) {
      const ValueId v = argument.values[0];
      const bool moves = lifetimes.ends_at(v, in.node) && uses[v] == 1;
      const bool number_for_tensor = graph.values[v].kind != ValueKind::Tensor && takes_tensor(*parameters[a].type());
      in.fills.push_back({position, v, moves, number_for_tensor});
      if (moves) uses[v] = 0;
    } else {
      in.arguments[a] = argument.constant;
      in.list_fills.push_back({position, argument.kind, argument.values});
    }
  }
  for (const auto& [v, count] : uses)
    if (count > 0 && lifetimes.ends_at(v, in.node)) in.released.push_back(v);
  for_each_definition(node, [&](ValueId v) {
    if (!lifetimes.is_read(v)) in.released.push_back(v);
  });
}

}  // namespace

struct Program::Code {
  Code(const Graph& graph, ExecutionHints hints);

  std::vector<Instruction> instructions;
  std::vector<AutocastRegion> autocast;
  std::vector<Program> branches;
  std::vector<ValueId> inputs;  // kNoValue where no node reads it
  std::vector<ValueKind> input_kinds;
  struct Output {
    ValueId value;
    ValueKind kind;
    bool moves;  // no later output is the same value
  };
  std::vector<Output> outputs;
  std::vector<std::pair<ValueId, at::Tensor>> attributes;
  std::vector<char> is_attribute;  // by value
  size_t states = 0;
};

Program::Code::Code(const Graph& graph, ExecutionHints hints)
    : autocast(graph.autocast), is_attribute(graph.values.size(), 0), states(hints.states) {
  const Lifetimes lifetimes(graph);
  for (const Attribute& attribute : graph.attributes) {
    if (attribute.value == kNoValue) continue;
    PLUMBLINE_CHECK(attribute.tensor.defined(), "attribute \"" + attribute.name + "\" is not bound to a tensor");
    attributes.emplace_back(attribute.value, attribute.tensor);
    is_attribute[attribute.value] = 1;
  }
  for (const ValueId v : graph.outputs)
    outputs.push_back({v, v == kNoValue ? ValueKind::Tensor : graph.values[v].kind, false});
  std::vector<char> seen(graph.values.size(), 0);
  for (auto output = outputs.rbegin(); output != outputs.rend(); ++output)
    if (output->value != kNoValue && !is_attribute[output->value])
      output->moves = !std::exchange(seen[output->value], 1);
  for (const GraphInput& input : graph.inputs) {
    const bool is_read = input.value != kNoValue && lifetimes.is_read(input.value);
    inputs.push_back(is_read ? input.value : kNoValue);
    input_kinds.push_back(input.value == kNoValue ? ValueKind::Tensor : graph.values[input.value].kind);
  }
  std::vector<int32_t> instruction_of(graph.nodes.size(), -1);
  instructions.reserve(graph.nodes.size());
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    if (node.is_split()) continue;
    Instruction in{.node = i, .op = *node.op};
    in.results = node.results;
    in.grad_enabled = node.grad_enabled;
    in.autocast = node.autocast;
    in.label = hints.labels.empty() ? to_text(graph, node) : std::move(hints.labels[i]);
    if (!node.branches.empty()) in.branches = static_cast<int32_t>(branches.size());
    for (const auto& branch : node.branches) branches.emplace_back(*branch);
    bind_arguments(graph, lifetimes, in);
    instruction_of[i] = static_cast<int32_t>(instructions.size());
    instructions.push_back(std::move(in));
  }
  for (const ExecutionHints::Replayed& hint : hints.replayed) {
    Instruction& in = instructions.at(instruction_of.at(hint.node));
    in.state = static_cast<int32_t>(hint.state);
    in.device = hint.device;
  }
  for (const ExecutionHints::Overwriting& hint : hints.overwriting) {
    Instruction& in = instructions.at(instruction_of.at(hint.node));
    in.overwritten = static_cast<int32_t>(hint.argument);
    in.overwriting = hint.op;
  }
}

Program::Program(const Graph& graph, ExecutionHints hints)
    : code_(std::make_shared<const Code>(graph, std::move(hints))) {}

void Program::run(std::span<const at::Tensor> inputs, std::vector<at::Tensor>& outputs, NodeObserver* observer) const {
  Frame(*this).run(inputs, outputs, observer);
}

/// What the instructions of one run have in common.
struct Frame::Run {
  NodeObserver* observer = nullptr;
  RandomStates random = {};
};

/// One instruction of a run.
struct Execution {
  Frame& frame;
  const Instruction& in;
  std::vector<c10::IValue>& slots = frame.slots_;
  std::vector<c10::IValue>& stack = frame.stack_;

  void fill() const {
    stack.clear();
    stack.insert(stack.end(), in.arguments.begin(), in.arguments.end());
    for (const Fill& fill : in.fills) {
      if (fill.last_use)
        stack[fill.position] = std::move(slots[fill.value]);
      else
        stack[fill.position] = slots[fill.value];
      if (fill.number_for_tensor) stack[fill.position] = wrapped_number(stack[fill.position].toScalar());
    }
    const auto slot = [&](ValueId v) -> const c10::IValue& { return slots[v]; };
    for (const ListFill& fill : in.list_fills)
      stack[fill.position] = boxed_list(fill.kind, stack[fill.position], fill.values, slot);
  }

  void call(const RandomStates& random) const {
    if (in.state >= 0 && random.states != nullptr) return call_random((*random.states)[in.state], random.mode);
    if (!in.overwriting || !is_sole_owner(stack[in.overwritten])) return in.op.callBoxed(&stack);
    stack.emplace_back(stack[in.overwritten].toTensor());
    in.overwriting->callBoxed(&stack);
  }

  void call_random(at::Tensor& state, RandomStates::Mode mode) const {
    if (mode == RandomStates::Mode::Record) {
      state = recorded_random_state(in.device);
      return in.op.callBoxed(&stack);
    }
    const RandomReplay replay(in.device, state);
    in.op.callBoxed(&stack);
  }

  /// The operands of a cond are a list of values; the branch that its predicate selects runs on them.
  void run_branch() const {
    const c10::IValue& predicate = slots[in.fills.at(0).value];
    const bool holds = predicate.isTensor() ? predicate.toTensor().item<bool>() : predicate.toBool();
    Frame& branch = frame.branches_[in.branches + (holds ? 0 : 1)];
    const Program::Code& code = *branch.program_.code_;
    const std::vector<ValueId>& operands = in.list_fills.at(0).values;
    for (size_t i = 0; i < operands.size(); ++i)
      if (code.inputs[i] != kNoValue) branch.slots_[code.inputs[i]] = slots[operands[i]];
    branch.execute({});
    c10::List<at::Tensor> results;
    for (const auto& output : code.outputs)
      results.push_back(output.value == kNoValue ? at::Tensor() : branch.slots_[output.value].toTensor());
    branch.clear();
    stack.clear();
    stack.emplace_back(std::move(results));
  }

  void store() const {
    for (size_t r = 0; r < in.results.size(); ++r) {
      const Result& result = in.results[r];
      if (!result.is_list) {
        if (result.values[0] != kNoValue) slots[result.values[0]] = std::move(stack[r]);
        continue;
      }
      std::vector<at::Tensor> list = stack[r].toTensorVector();
      if (list.size() != result.values.size())
        throw Error("returned a list of " + std::to_string(list.size()) + " tensors; at capture it had " +
                    std::to_string(result.values.size()));
      for (size_t k = 0; k < list.size(); ++k)
        if (result.values[k] != kNoValue) slots[result.values[k]] = std::move(list[k]);
    }
  }
};

Frame::Frame(Program program) : program_(std::move(program)) {
  const Program::Code& code = *program_.code_;
  slots_.resize(code.is_attribute.size());
  for (const auto& [value, tensor] : code.attributes) slots_[value] = tensor;
  stack_.reserve(64);
  for (const Program& branch : code.branches) branches_.emplace_back(branch);
}

void Frame::execute(const Run& run) {
  const Program::Code& code = *program_.code_;
  GradModeScope grad_mode;
  AutocastScope autocast(code.autocast);
  for (const Instruction& in : code.instructions) {
    grad_mode.set(in.grad_enabled);
    autocast.set(in.autocast);
    const Execution execution{*this, in};
    try {
      if (run.observer) run.observer->before(in.node, *this);
      if (in.branches < 0) {
        execution.fill();
        execution.call(run.random);
      } else {
        execution.run_branch();
      }
      execution.store();
      if (run.observer) run.observer->after(in.node, *this);
    } catch (const std::exception& error) {
      clear();
      throw Error("running " + in.label + ": " + error_text(error));
    }
    for (const ValueId v : in.released) slots_[v] = c10::IValue();
  }
  stack_.clear();
}

void Frame::run(std::span<const at::Tensor> inputs, std::vector<at::Tensor>& outputs, NodeObserver* observer) {
  bind_inputs(inputs, [](const at::Tensor& tensor) { return tensor; });
  execute({.observer = observer});
  take_outputs(outputs);
}

void Frame::run(std::vector<at::Tensor>&& inputs, std::vector<at::Tensor>& outputs, const RandomStates& random) {
  if (random.mode == RandomStates::Mode::Record && random.states != nullptr)
    random.states->resize(program_.code_->states);
  bind_inputs(inputs, [](at::Tensor& tensor) { return std::move(tensor); });
  inputs.clear();
  execute({.random = random});
  take_outputs(outputs);
}

template <class Tensors, class Take>
void Frame::bind_inputs(Tensors& inputs, const Take& take) {
  const Program::Code& code = *program_.code_;
  PLUMBLINE_CHECK(
      inputs.size() == code.inputs.size(),
      std::to_string(inputs.size()) + " inputs for a graph that takes " + std::to_string(code.inputs.size()));
  try {
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (code.inputs[i] == kNoValue) continue;
      c10::IValue& slot = slots_[code.inputs[i]];
      if (code.input_kinds[i] == ValueKind::Tensor)
        slot = take(inputs[i]);
      else
        slot = number_in(inputs[i], code.input_kinds[i]);
    }
  } catch (...) {
    clear();  // a tensor that holds no single number
    throw;
  }
}

void Frame::take_outputs(std::vector<at::Tensor>& outputs) {
  const Program::Code& code = *program_.code_;
  outputs.resize(code.outputs.size());
  for (size_t i = 0; i < outputs.size(); ++i) {
    const auto& [value, kind, moves] = code.outputs[i];
    if (value == kNoValue)
      outputs[i] = at::Tensor();
    else if (kind != ValueKind::Tensor)
      outputs[i] = at::scalar_tensor(slots_[value].toScalar(), number_dtype(kind));
    else if (moves)
      outputs[i] = std::move(slots_[value]).toTensor();
    else
      outputs[i] = slots_[value].toTensor();
    if (moves) slots_[value] = c10::IValue();
  }
}

void Frame::clear() {
  for (size_t v = 0; v < slots_.size(); ++v)
    if (!program_.code_->is_attribute[v]) slots_[v] = c10::IValue();
  stack_.clear();
}

}  // namespace plumbline::graph
