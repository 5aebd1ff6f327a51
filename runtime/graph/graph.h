// Graph: a captured program of ATen calls in the order the model made them, with parameters and buffers by their
// qualified names. It is plain data: capture makes it, text prints and parses it, split cuts it, a Program runs
// it.
//
// Values are numbered densely (static single assignment: an in-place call gives its result a new id that shares the
// storage of the old one). A value is defined by an input, an attribute or exactly one node. Most are tensors; a number
// that a call reads from a tensor (a size that depends on data) is a value as well.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace plumbline::graph {

using ValueId = int32_t;
/// Stands for Python's None: an undefined tensor.
inline constexpr ValueId kNoValue = -1;

enum class ValueKind : uint8_t { Tensor, Int, Float, Bool };

/// What is known of a value from the captured run. A number has the dtype i64, f64 or bool and no sizes.
struct Value {
  at::ScalarType dtype = at::kFloat;
  std::vector<int64_t> sizes;
  bool requires_grad = false;
  /// Values with the same number share memory; -1 where unknown (a graph read from text).
  int32_t storage = -1;
  ValueKind kind = ValueKind::Tensor;
};

/// One argument of a call: a constant (a number also where the operator takes a tensor), a value, or a list of values
/// (kNoValue: None). A list of numbers of which some are values is a NumberList: `constant` is the list, in which the
/// places of `values` that are not kNoValue are filled in.
struct Argument {
  enum class Kind : uint8_t { Constant, Value, TensorList, OptionalTensorList, NumberList };
  Kind kind = Kind::Constant;
  c10::IValue constant;
  std::vector<ValueId> values;
};

/// One return of a call: a tensor or a number (one id), or a list of tensors.
struct Result {
  bool is_list = false;
  std::vector<ValueId> values;
};

struct Graph;

struct Node {
  /// Empty for a split marker.
  std::optional<c10::OperatorHandle> op;
  std::vector<Argument> arguments;
  std::vector<Result> results;
  /// Whether gradients were being recorded when the model made this call.
  bool grad_enabled = true;
  /// Which of Graph::autocast it lies in; -1: none.
  int32_t autocast = -1;
  /// Of plumbline::cond: the graphs for true and for false, whose inputs are its operands.
  std::vector<std::shared_ptr<const Graph>> branches = {};

  bool is_split() const { return !op.has_value(); }
};

struct GraphInput {
  std::string name;
  ValueId value = kNoValue;
};

enum class AttributeKind : uint8_t { Parameter, Buffer, Constant };

/// A tensor that the graph owns: a parameter or buffer of the module, or a tensor of unknown origin (a constant).
struct Attribute {
  AttributeKind kind = AttributeKind::Parameter;
  /// The canonical qualified name: the first under which the module registered this tensor.
  std::string name;
  /// The other names of the same tensor (tied parameters).
  std::vector<std::string> aliases;
  /// False for a buffer that is no part of the model's state dict.
  bool persistent = true;
  at::Tensor tensor;
  /// kNoValue where the captured run never used it.
  ValueId value = kNoValue;
};

/// A module that forward entered through plumbline::call(): it made the nodes [begin, end).
struct ModuleCall {
  std::string name;
  std::string type;
  int32_t begin = 0;
  int32_t end = 0;
};

/// A stretch of forward under autocast (or under autocast switched off): its calls choose the precision of their
/// arguments as torch.autocast does, with one cache of cast parameters for the outermost region.
struct AutocastRegion {
  c10::DeviceType device = c10::DeviceType::CPU;
  at::ScalarType dtype = at::kBFloat16;
  bool enabled = true;
  bool cache = true;
  int32_t outer = -1;  ///< the region around it, which has a smaller number

  bool operator==(const AutocastRegion&) const = default;
};

struct Graph {
  std::vector<GraphInput> inputs;
  std::vector<Attribute> attributes;
  std::vector<Node> nodes;
  std::vector<ValueId> outputs;
  std::vector<Value> values;
  /// In the order of entry.
  std::vector<ModuleCall> module_calls;
  std::vector<AutocastRegion> autocast;

  ValueId add_value(Value value) {
    values.push_back(std::move(value));
    return static_cast<ValueId>(values.size()) - 1;
  }
};

/// Calls `visit(ValueId)` for every value that `node` reads, in argument order; None is left out.
template <class Visit>
void for_each_use(const Node& node, Visit&& visit) {
  for (const Argument& argument : node.arguments)
    for (ValueId v : argument.values)
      if (v != kNoValue) visit(v);
}

/// Calls `visit(ValueId)` for every value that `node` defines.
template <class Visit>
void for_each_definition(const Node& node, Visit&& visit) {
  for (const Result& result : node.results)
    for (ValueId v : result.values)
      if (v != kNoValue) visit(v);
}

/// Calls `visit(ValueId)` for every value whose memory `node` writes, as its schema says, and for the running
/// statistics of batch and instance norm, which their schemas keep quiet about.
void for_each_mutation(const Node& node, const std::function<void(ValueId)>& visit);

/// Whether `node` draws random numbers from the default generator (a dropout with p = 0 does not) or sets its state.
bool draws_random_numbers(const Node& node);

/// Throws Error naming the place when a value is used before its definition, defined twice, or out of range.
void verify(const Graph& graph);

/// "f32[2,3]": dtype and shape, as errors and the text form print them.
std::string describe(at::ScalarType dtype, at::IntArrayRef sizes);
std::string describe(const at::Tensor& tensor);

}  // namespace plumbline::graph
