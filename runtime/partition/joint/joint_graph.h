// JointGraph: the forward and the backward of a module in one graph, as a partitioner takes it.
//
// Plain data without torch: tracing makes it (trace.h), its JSON form is read and written (joint_json.h), a partition
// cuts it into a forward and a backward graph (partition.h). The words are those of AOTAutograd: a primal is an input
// of the forward (an input, a parameter, a buffer), a tangent the gradient of one of its outputs.
//
// Nodes stand in topological order, which is the order in which the trace met them. A node is one value, as in
// torch.fx: a call of several results is followed by getitem nodes. What the caller receives is `outputs`; it counts as
// a user of every node that it names.
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
/// Stands for Python's None among outputs.
inline constexpr NodeIndex kNoNode = -1;

/// A size, stride or offset in elements: a number, and the expression that it came from where shapes are dynamic.
struct Extent {
  int64_t value = 0;            ///< the hint, where there is an expression
  std::string expression = {};  ///< empty: a plain number
  bool operator==(const Extent&) const = default;
};

/// One argument of a call, as written: schema defaults are not filled in.
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
    Other          ///< `text`: what Python calls it; cannot be executed
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

/// By kind and by bits: 0.0 differs from -0.0, a NaN equals itself.
bool equal(const JointArgument& a, const JointArgument& b);

/// What a node gives.
struct JointResult {
  enum class Kind : uint8_t { None, Tensor, Scalar, Tuple };
  Kind kind = Kind::None;
  /// Of a tensor. Of a scalar: Int64 (an int), Float64 (a float) or Bool.
  types::Dtype dtype = types::Dtype::Float32;
  std::vector<Extent> shape = {}, strides = {};  ///< elements
  Extent offset = {};                            ///< elements
  /// Elements times their size, at the hints: a view or an expanded tensor counts in full. Not the memory held; see
  /// `storage`.
  int64_t bytes = 0;
  /// Index into JointGraph::storage_bytes; tensors with the same number share memory. -1: unknown.
  int32_t storage = -1;
  types::Device device = {};
  Extent scalar = {};                   ///< of a scalar: hint and expression
  double real_hint = 0;                 ///< of a float scalar, in place of scalar.value
  std::vector<JointResult> items = {};  ///< of a tuple
};

enum class JointKind : uint8_t { Primal, Tangent, ForwardSeed, BackwardSeed, OtherInput, Call, GetItem, GetAttr };

/// What PyTorch's tracing says of the place of a node (`partitioner_tag`).
enum class JointMark : uint8_t { None, IsForward, IsBackward, MustBeInForward, MustBeInBackward };

/// A user's word on a node (torch.utils.checkpoint.CheckpointPolicy).
enum class CheckpointPolicy : uint8_t {
  MustSave,
  PreferSave,
  MustRecompute,
  PreferRecompute,
  MustOffload,
  PreferOffload
};

struct JointNode {
  std::string name;  ///< unique in the graph
  JointKind kind = JointKind::Call;
  std::string op = {};         ///< of a call: "aten::mm"; "operator::mul" acts on symbolic scalars
  std::string overload = {};   ///< "default", "Tensor"
  std::string attribute = {};  ///< of GetAttr: which constant tensor; of a traced primal: what it is in the program
  std::vector<JointArgument> args = {};
  std::vector<std::pair<std::string, JointArgument>> kwargs = {};
  JointResult out = {};
  bool multi_output = false;          ///< its result is a tuple: it cannot be saved itself, its getitems can
  NodeIndex aliases_input = kNoNode;  ///< the first primal whose storage the result shares

  // Tags of the overload.
  bool pointwise = false, core = false, seeded = false /* nondeterministic_seeded */, inplace_view = false,
       data_dependent_output = false, dynamic_output_shape = false;
  bool writes = false;  ///< "mutable": its schema writes an argument
  bool view = false;    ///< its schema's result aliases an argument
  bool impure = false;  ///< never removed as dead, never merged; seeded calls are

  bool no_grad = false;  ///< the model made this call with gradients switched off, which some kernels look at

  JointMark mark = JointMark::None;
  std::optional<CheckpointPolicy> recompute = {};
  int region = -1;  ///< of checkpointing; only the order of the numbers matters. -1: none
  double flops = 1;
  std::vector<std::string> free_symbols = {};  ///< in shape, strides and offset; sorted
  std::string binds = {};                      ///< this symbolic input binds that symbol
  bool epilogue_mutation = false;              ///< a primal whose update in place is replayed after the forward
  bool no_vc_check = false;
  bool backward_hook = false;
  std::optional<double> memory_budget = {};

  bool is_input() const { return kind <= JointKind::OtherInput; }
};

struct JointGraph {
  std::vector<JointNode> nodes;
  /// First the forward's, then the gradients, one for each primal; kNoNode for None.
  std::vector<NodeIndex> outputs;
  int num_forward_outputs = 0;
  std::vector<int64_t> storage_bytes;

  struct Symbol {
    int64_t hint = 0;
    std::optional<int64_t> low, high;  ///< unset: unbounded
  };
  std::map<std::string, Symbol> symbols;

  std::span<const NodeIndex> forward_outputs() const { return std::span(outputs).first(num_forward_outputs); }
  std::span<const NodeIndex> backward_outputs() const { return std::span(outputs).subspan(num_forward_outputs); }
};

/// Calls `visit(NodeIndex)` for each node among the arguments in their order, with repeats, inside lists and slices and
/// among the keyword arguments as well.
template <class Visit>
void for_each_input(const JointNode& node, Visit&& visit) {
  const auto descend = [&](const auto& self, const JointArgument& argument) -> void {
    if (argument.kind == JointArgument::Kind::Node) visit(argument.node);
    for (const JointArgument& item : argument.items) self(self, item);
  };
  for (const JointArgument& argument : node.args) descend(descend, argument);
  for (const auto& [name, argument] : node.kwargs) descend(descend, argument);
}

/// Replaces each node among the arguments by `map(node)`.
template <class Map>
void map_inputs(JointNode& node, Map&& map) {
  const auto descend = [&](const auto& self, JointArgument& argument) -> void {
    if (argument.kind == JointArgument::Kind::Node) argument.node = map(argument.node);
    for (JointArgument& item : argument.items) self(self, item);
  };
  for (JointArgument& argument : node.args) descend(descend, argument);
  for (auto& [name, argument] : node.kwargs) descend(descend, argument);
}

/// Who reads whom, each pair once; flat arrays, so that a walk over 100 000 nodes costs milliseconds.
struct JointEdges {
  /// The distinct inputs of a node, in the order of its arguments.
  std::span<const NodeIndex> inputs(NodeIndex node) const { return part(input_begin, input, node); }
  /// The distinct nodes that read a node, ascending. The outputs are not among them.
  std::span<const NodeIndex> users(NodeIndex node) const { return part(user_begin, user, node); }

  std::vector<int32_t> input_begin, user_begin;  ///< by node, and one more
  std::vector<NodeIndex> input, user;
  std::vector<char> is_output;  ///< by node: named by JointGraph::outputs

 private:
  static std::span<const NodeIndex> part(const std::vector<int32_t>& begin, const std::vector<NodeIndex>& all,
                                         NodeIndex i) {
    return std::span(all).subspan(begin[i], begin[i + 1] - begin[i]);
  }
};

JointEdges edges_of(const JointGraph& graph);

/// Throws InputError naming the node: an input that comes later or does not exist, a name that stands twice, inputs
/// after calls, a getitem that takes no result, more forward outputs than outputs, storages out of range or too large.
void verify(const JointGraph& graph);

}  // namespace plumbline::partition
