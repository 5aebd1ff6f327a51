// JointGraph: the forward and the backward of a module in one graph, the input of a partitioner.
//
// Plain data without torch. Tracing creates a joint graph (trace.h), joint_json.h reads and writes its JSON form, and
// partition.h cuts it into a forward and a backward graph. The terms are those of AOTAutograd: a primal is an input of
// the forward (a model input, a parameter or a buffer), a tangent is the gradient of one of the forward's outputs.
//
// Nodes are in topological order, which is the order in which the trace met them. A node is one value, as in torch.fx:
// a call with several results is followed by getitem nodes. `outputs` are the values that the caller receives.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "runtime/types/types.h"

namespace plumbline::partition {

/// Position in JointGraph::nodes.
using NodeIndex = int32_t;
/// No node; among outputs, Python's None.
inline constexpr NodeIndex kNoNode = -1;

/// A size, stride or offset in elements: a number and, for a dynamic shape, the symbolic expression behind it.
struct Extent {
  int64_t value = 0;            ///< the number; with an expression, its hint (the value during tracing)
  std::string expression = {};  ///< empty for a plain number
  bool operator==(const Extent&) const = default;
};

/// One argument of a call, as recorded: omitted arguments with schema defaults are not added.
struct JointArgument {
  enum class Kind : uint8_t {
    None,
    Node,          ///< `node`
    Bool,          ///< `integer`
    Integer,       ///< `integer`
    Float,         ///< `real`
    Complex,       ///< `real`, `imaginary`
    String,        ///< `text`
    Dtype,         ///< `dtype`
    Device,        ///< `device`
    Layout,        ///< `layout`
    MemoryFormat,  ///< `memory_format`
    Symbolic,      ///< `text`: the expression; `integer`: its hint
    List,          ///< `items`
    Slice,         ///< `items`: begin, end, step
    Other          ///< `text`: Python's representation; such a call cannot be executed
  };
  Kind kind = Kind::None;
  types::Dtype dtype = {};
  types::Layout layout = {};
  types::MemoryFormat memory_format = {};
  types::Device device = {};
  NodeIndex node = kNoNode;
  int64_t integer = 0;
  double real = 0, imaginary = 0;
  std::string text = {};
  std::vector<JointArgument> items = {};
};

/// Whether kind and all members are equal. Floats are compared by bits: 0.0 differs from -0.0, a NaN equals itself.
bool equal(const JointArgument& a, const JointArgument& b);

/// The result of a node.
struct JointResult {
  enum class Kind : uint8_t { None, Tensor, Scalar, Tuple };
  Kind kind = Kind::None;
  /// Of a tensor: any. Of a scalar: Int64 (an int), Float64 (a float) or Bool.
  types::Dtype dtype = types::Dtype::Float32;
  std::vector<Extent> shape = {}, strides = {};  ///< elements
  Extent offset = {};                            ///< elements
  /// Number of elements times element size, with hints for dynamic sizes: a view or an expanded tensor counts in full.
  /// The memory held is the size of `storage`.
  int64_t bytes = 0;
  /// Index into JointGraph::storage_bytes; tensors with the same index share memory. -1: unknown.
  int32_t storage = -1;
  types::Device device = {};
  Extent scalar = {};                   ///< of a scalar: hint and expression
  double real_hint = 0;                 ///< of a float scalar: its hint; scalar.value is unused
  std::vector<JointResult> items = {};  ///< of a tuple
};

/// The seeds are random seeds that the forward or the backward takes as an input. OtherInput is another Python object,
/// which cannot be partitioned. GetAttr is a constant tensor.
enum class JointKind : uint8_t { Primal, Tangent, ForwardSeed, BackwardSeed, OtherInput, Call, GetItem, GetAttr };

/// The half in which PyTorch's tracing saw the node, or in which it must run (`partitioner_tag`).
enum class JointMark : uint8_t { None, IsForward, IsBackward, MustBeInForward, MustBeInBackward };

/// The user's tag on a node (torch.utils.checkpoint.CheckpointPolicy).
enum class CheckpointPolicy : uint8_t {
  MustSave,
  PreferSave,
  MustRecompute,
  PreferRecompute,
  MustOffload,
  PreferOffload
};

/// The members that most walks over a graph read come first, so that they share a cache line.
struct JointNode {
  std::string name;  ///< unique in the graph
  JointKind kind = JointKind::Call;
  JointMark mark = JointMark::None;
  std::optional<CheckpointPolicy> recompute = {};
  bool writes = false;  ///< "mutable": the schema writes an argument
  bool view = false;    ///< a result of the schema aliases an argument
  bool impure = false;  ///< never removed as dead, never merged; seeded calls are impure

  // Tags of the overload.
  bool pointwise = false, core = false, seeded = false /* nondeterministic_seeded */, inplace_view = false,
       data_dependent_output = false, dynamic_output_shape = false;

  bool multi_output = false;       ///< the result is a tuple: only its getitems can be saved
  bool no_grad = false;            ///< the model made this call with gradients disabled, which changes the path of some
                                   ///< kernels
  bool epilogue_mutation = false;  ///< a primal whose in-place update is replayed after the forward
  bool no_vc_check = false;        ///< autograd does not check the version counter of the saved value
  bool backward_hook = false;      ///< the user registered a backward hook on the tensor
  NodeIndex aliases_input = kNoNode;  ///< the first primal whose storage the result shares

  std::string op = {};         ///< of a call: "aten::mm"; "operator::mul" acts on symbolic scalars
  std::string overload = {};   ///< "default", "Tensor"
  std::string attribute = {};  ///< name of a GetAttr's constant, or of a primal's parameter, buffer or input if known
  std::vector<JointArgument> args = {};
  std::vector<std::pair<std::string, JointArgument>> kwargs = {};
  JointResult out = {};

  int region = -1;                             ///< checkpoint region; only the order of the numbers matters. -1: none
  double flops = 1;                            ///< floating-point operations (joint_flops.h)
  std::vector<std::string> free_symbols = {};  ///< in shape, strides and offset; sorted
  std::string binds = {};                      ///< of a symbolic input: the symbol that it binds; empty: none
  std::optional<double> memory_budget = {};    ///< a budget set by the user for the whole graph

  bool is_input() const { return kind <= JointKind::OtherInput; }
};

struct JointGraph {
  std::vector<JointNode> nodes;
  /// First the forward's outputs, then the gradients, one for each primal; kNoNode for None.
  std::vector<NodeIndex> outputs;
  int num_forward_outputs = 0;
  std::vector<int64_t> storage_bytes;  ///< size of each storage (JointResult::storage)

  struct Symbol {
    int64_t hint = 0;
    std::optional<int64_t> low, high;  ///< unset: unbounded
  };
  std::map<std::string, Symbol> symbols;  ///< by name

  std::span<const NodeIndex> forward_outputs() const { return std::span(outputs).first(num_forward_outputs); }
  std::span<const NodeIndex> backward_outputs() const { return std::span(outputs).subspan(num_forward_outputs); }
};

/// Calls `visit(NodeIndex)` for each node among the positional, then the keyword arguments, with repeats, also inside
/// lists and slices.
template <class Visit>
void for_each_input(const JointNode& node, Visit&& visit) {
  // `items` is read whatever the kind: a branch on the kind is mispredicted while the argument comes from memory.
  const auto descend = [&](const auto& self, const JointArgument& argument) -> void {
    if (argument.kind == JointArgument::Kind::Node) visit(argument.node);
    for (const JointArgument& item : argument.items) self(self, item);
  };
  for (const JointArgument& argument : node.args) descend(descend, argument);
  for (const auto& [name, argument] : node.kwargs) descend(descend, argument);
}

/// Replaces each node that for_each_input() visits by `map(node)`.
template <class Map>
void map_inputs(JointNode& node, Map&& map) {
  const auto descend = [&](const auto& self, JointArgument& argument) -> void {
    if (argument.kind == JointArgument::Kind::Node) argument.node = map(argument.node);
    for (JointArgument& item : argument.items) self(self, item);
  };
  for (JointArgument& argument : node.args) descend(descend, argument);
  for (auto& [name, argument] : node.kwargs) descend(descend, argument);
}

/// The inputs and users of each node. Flat arrays, so that a walk over 100 000 nodes takes milliseconds.
struct JointEdges {
  /// The distinct inputs of a node, in the order of its arguments.
  std::span<const NodeIndex> inputs(NodeIndex node) const { return part(input_begin, input, node); }
  /// The distinct nodes that read a node, ascending. JointGraph::outputs does not count as a user; see is_output.
  std::span<const NodeIndex> users(NodeIndex node) const { return part(user_begin, user, node); }

  std::vector<int32_t> input_begin, user_begin;  ///< indexed by NodeIndex, plus one entry for the end
  std::vector<NodeIndex> input, user;
  std::vector<char> is_output;  ///< indexed by NodeIndex: whether JointGraph::outputs has the node
  std::vector<char> direct;  ///< indexed by NodeIndex: whether its inputs are positional arguments themselves (not in
                             ///< lists), each once

 private:
  static std::span<const NodeIndex> part(const std::vector<int32_t>& begin, const std::vector<NodeIndex>& all,
                                         NodeIndex i) {
    return std::span(all).subspan(begin[i], begin[i + 1] - begin[i]);
  }
};

/// Computes the edges of `graph`; they become invalid if the graph changes.
JointEdges edges_of(const JointGraph& graph);

/// Returns the inputs of `kind`, ascending. Inputs come before all other nodes.
std::vector<NodeIndex> inputs_of_kind(const JointGraph& graph, JointKind kind);

/// Throws InputError if the graph is malformed: a node reads a later or nonexistent node; a name is missing or occurs
/// twice; an input follows a call; a getitem names no result; a result, storage or output index is out of range; or all
/// results or all storages take more than 2^60 bytes.
void verify(const JointGraph& graph);

}  // namespace plumbline::partition
