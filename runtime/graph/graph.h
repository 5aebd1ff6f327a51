// Graph: a captured program of ATen calls in the order in which the model made them, with parameters and buffers under
// their qualified names. A Graph is plain data: capture makes, io/text.h prints, split cuts and a Program runs graphs.
// Copies share attribute tensors and branches.
//
// Values are numbered densely (static single assignment: the result of an in-place call is a new value with the storage
// number of the changed one). A value is defined by an input, an attribute or exactly one node. Most values are
// tensors; a number that a call reads from a tensor (a size that depends on data) is a value as well.
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
/// No value: Python's None, an undefined tensor.
inline constexpr ValueId kNoValue = -1;

enum class ValueKind : uint8_t { Tensor, Int, Float, Bool };

/// The dtype of a number: i64, f64 or bool. `kind` must not be Tensor.
inline at::ScalarType number_dtype(ValueKind kind) {
  return kind == ValueKind::Int ? at::kLong : kind == ValueKind::Float ? at::kDouble : at::kBool;
}

/// The facts about a value that the captured run showed. A number has its number_dtype() and no sizes.
struct Value {
  at::ScalarType dtype = at::kFloat;
  std::vector<int64_t> sizes;
  bool requires_grad = false;
  /// Values with the same storage number share memory; -1 if unknown (a graph read from text) or without storage.
  int32_t storage = -1;
  ValueKind kind = ValueKind::Tensor;
};

/// One argument of a call: a constant (which may be a number for a tensor parameter), a value, or a list of tensors
/// (kNoValue: None). A NumberList is a list of numbers some of which are values: `constant` is the whole list, and
/// `values`, of the same length, has kNoValue for an element that is constant.
struct Argument {
  enum class Kind : uint8_t { Constant, Value, TensorList, OptionalTensorList, NumberList };
  Kind kind = Kind::Constant;
  c10::IValue constant;
  std::vector<ValueId> values;
};

/// One return of a call: a tensor or a number (one id), or a list of tensors. kNoValue: undefined.
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
  /// Whether gradients were recorded when the model made this call.
  bool grad_enabled = true;
  /// The index in Graph::autocast of the innermost region around this call; -1: none.
  int32_t autocast = -1;
  /// For plumbline::cond: the graphs for true and for false, whose inputs are the operands; otherwise empty.
  std::vector<std::shared_ptr<const Graph>> branches = {};

  bool is_split() const { return !op.has_value(); }
};

struct GraphInput {
  std::string name;
  ValueId value = kNoValue;
};

enum class AttributeKind : uint8_t { Parameter, Buffer, Constant };

/// A tensor of the graph itself: a parameter or buffer of the module, or a tensor of unknown origin (a constant).
struct Attribute {
  AttributeKind kind = AttributeKind::Parameter;
  /// The canonical qualified name: the first under which the module registered this tensor.
  std::string name;
  /// The other names of the same tensor (tied parameters).
  std::vector<std::string> aliases;
  /// False for a buffer that is not in the model's state dict.
  bool persistent = true;
  /// Shared with the module, not copied. Undefined in a graph from text or JSON until it is bound.
  at::Tensor tensor;
  /// kNoValue if the captured run never used the attribute.
  ValueId value = kNoValue;
};

/// A call of a module: forward entered the module through plumbline::call() (or torch.export recorded the call), and
/// the module made the nodes [begin, end).
struct ModuleCall {
  std::string name;
  std::string type;
  int32_t begin = 0;
  int32_t end = 0;
};

/// A region of forward with autocast enabled or disabled: its calls choose the precision of their arguments as
/// torch.autocast does, with one cache of cast parameters per outermost region.
struct AutocastRegion {
  c10::DeviceType device = c10::DeviceType::CPU;
  at::ScalarType dtype = at::kBFloat16;
  bool enabled = true;
  bool cache = true;
  int32_t outer = -1;  ///< index of the enclosing region, which is smaller than this region's; -1: none

  bool operator==(const AutocastRegion&) const = default;
};

struct Graph {
  std::vector<GraphInput> inputs;
  std::vector<Attribute> attributes;
  std::vector<Node> nodes;
  std::vector<ValueId> outputs;
  std::vector<Value> values;
  /// In the order of entry, an outer call before its inner calls.
  std::vector<ModuleCall> module_calls;
  std::vector<AutocastRegion> autocast;

  ValueId add_value(Value value) {
    values.push_back(std::move(value));
    return static_cast<ValueId>(values.size()) - 1;
  }
};

/// Calls `visit(ValueId)` for every value that `node` reads, in argument order, without kNoValue. A value that occurs
/// twice is visited twice.
template <class Visit>
void for_each_use(const Node& node, Visit&& visit) {
  for (const Argument& argument : node.arguments)
    for (ValueId v : argument.values)
      if (v != kNoValue) visit(v);
}

/// Calls `visit(ValueId)` for every value that `node` defines, in the order of the results, without kNoValue.
template <class Visit>
void for_each_definition(const Node& node, Visit&& visit) {
  for (const Result& result : node.results)
    for (ValueId v : result.values)
      if (v != kNoValue) visit(v);
}

/// Calls `visit(ValueId)` for every argument whose memory `node` writes according to the operator's schema, and for the
/// running statistics of a batch or instance norm in training, whose schemas do not declare the write. Does not enter
/// branches.
void for_each_mutation(const Node& node, const std::function<void(ValueId)>& visit);

/// Whether `node`, or a node in its branches, draws random numbers from the default generator (a dropout with p = 0 or
/// outside training does not) or sets the generator's state.
bool draws_random_numbers(const Node& node);

/// Throws Error naming the place if a value is used before its definition, defined twice, or out of range. Does not
/// verify branches.
void verify(const Graph& graph);

/// Dtype and shape, as in errors and the text form: "f32[2,3]"; "undefined" for an undefined tensor.
std::string describe(at::ScalarType dtype, at::IntArrayRef sizes);
std::string describe(const at::Tensor& tensor);

}  // namespace plumbline::graph
