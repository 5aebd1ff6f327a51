#include <array>
#include <limits>
#include <nlohmann/json.hpp>
#include <string_view>
#include <unordered_map>

#include "runtime/error.h"
#include "runtime/partition/joint/json/joint_json.h"
#include "runtime/partition/joint/json/joint_json_words.h"
#include "runtime/text/join.h"

namespace plumbline::partition {
namespace {

using Json = nlohmann::json;
using Argument = JointArgument::Kind;
using Result = JointResult::Kind;

template <class Words>
size_t word(const JsonPlace& place, const Words& words) {
  const std::string text = place.text();
  for (size_t i = 0; i < words.size(); ++i)
    if (!text.empty() && text == words[i]) return i;
  std::vector<std::string_view> known;
  for (const std::string_view each : words)
    if (!each.empty()) known.push_back(each);
  place.fail("one of " + join(known));
}

template <class Find, class Names>
auto named(const JsonPlace& place, const Find& find, const Names& names) {
  if (const auto value = find(place.text())) return *value;
  place.fail("one of " + join(names()));
}

types::Dtype dtype(const JsonPlace& place) { return named(place, types::dtype_named, types::dtype_names); }

types::Device device(const JsonPlace& place) {
  if (const auto device = types::device_named(place.text())) return *device;
  place.fail("a device such as \"cpu\" or \"cuda:0\"");
}

using Names = std::unordered_map<std::string, NodeIndex>;

Extent extent(const JsonPlace& place) {
  if (!place.json().is_object()) return {place.integer(), {}};
  place.expect_only({"sym", "hint"});
  return {place["hint"].integer(), place["sym"].text()};
}

std::vector<Extent> extents(const JsonPlace& place) {
  std::vector<Extent> all;
  all.reserve(place.json().size());
  for (const JsonPlace& item : place.items()) all.push_back(extent(item));
  return all;
}

/// A node named here, which must be among the first `before`.
NodeIndex node_named(const JsonPlace& place, const Names& names, NodeIndex before) {
  const auto found = names.find(place.text());
  if (found == names.end()) place.fail("the name of a node");
  if (found->second >= before) place.fail("the name of a node that comes before this one");
  return found->second;
}

class ArgumentReader {
 public:
  ArgumentReader(const Names& names, NodeIndex reader) : names_(names), reader_(reader) {}

  JointArgument read(const JsonPlace& place) const {
    const Json& json = place.json();
    switch (json.type()) {
      case Json::value_t::null:
        return {};
      case Json::value_t::boolean:
        return {.kind = Argument::Bool, .integer = place.boolean()};
      case Json::value_t::number_integer:
      case Json::value_t::number_unsigned:
        return {.kind = Argument::Integer, .integer = place.integer()};
      case Json::value_t::number_float:
        return {.kind = Argument::Float, .real = json.get<double>()};
      case Json::value_t::string:
        return {.kind = Argument::String, .text = place.text()};
      case Json::value_t::array:
        return {.kind = Argument::List, .items = items(place.items())};
      default:
        return object(place);
    }
  }

 private:
  std::vector<JointArgument> items(const std::vector<JsonPlace>& places) const {
    std::vector<JointArgument> all;
    all.reserve(places.size());
    for (const JsonPlace& place : places) all.push_back(read(place));
    return all;
  }

  JointArgument object(const JsonPlace& place) const {
    const std::string key = place.json().empty() ? "" : place.json().begin().key();
    if (key == "hint" || key == "sym") {
      place.expect_only({"sym", "hint"});
      return {.kind = Argument::Symbolic, .integer = place["hint"].integer(), .text = place["sym"].text()};
    }
    if (place.json().size() != 1) fail(place);
    if (key == "node") return {.kind = Argument::Node, .node = node_named(place["node"], names_, reader_)};
    if (key == "float") return {.kind = Argument::Float, .real = place.real()};
    if (key == "slice") return {.kind = Argument::Slice, .items = items(place["slice"].items(3))};
    if (key == "complex") {
      const std::vector<JsonPlace> parts = place["complex"].items(2);
      return {.kind = Argument::Complex, .real = parts[0].real(), .imaginary = parts[1].real()};
    }
    if (key == "dtype") return {.kind = Argument::Dtype, .dtype = dtype(place["dtype"])};
    if (key == "device") return {.kind = Argument::Device, .device = device(place["device"])};
    if (key == "layout")
      return {.kind = Argument::Layout, .layout = named(place["layout"], types::layout_named, types::layout_names)};
    if (key == "memory_format")
      return {.kind = Argument::MemoryFormat,
              .memory_format = named(place["memory_format"], types::memory_format_named, types::memory_format_names)};
    if (key == "other") return {.kind = Argument::Other, .text = place["other"].text()};
    fail(place);
  }

  [[noreturn]] static void fail(const JsonPlace& place) {
    place.fail(
        "an argument: null, true, a number, a text, a list, or an object with one of node, dtype, device, layout, "
        "memory_format, float, complex, slice, other, or with sym and hint");
  }

  const Names& names_;
  NodeIndex reader_;
};

JointResult result(const JsonPlace& place) {
  JointResult out;
  if (place.is_null()) return out;
  if (const auto items = place.find("tuple")) {
    place.expect_only({"tuple"});
    out.kind = Result::Tuple;
    for (const JsonPlace& item : items->items()) out.items.push_back(result(item));
    return out;
  }
  if (const auto scalar = place.find("scalar")) {
    place.expect_only({"scalar", "sym", "hint"});
    out.kind = Result::Scalar;
    constexpr std::array words = {"int", "float", "bool"};
    constexpr std::array dtypes = {types::Dtype::Int64, types::Dtype::Float64, types::Dtype::Bool};
    out.dtype = dtypes[word(*scalar, words)];
    if (const auto expression = place.find("sym")) out.scalar.expression = expression->text();
    if (const auto hint = place.find("hint")) {
      if (out.dtype == types::Dtype::Int64) out.scalar.value = hint->integer();
      if (out.dtype == types::Dtype::Bool) out.scalar.value = hint->boolean();
      if (out.dtype == types::Dtype::Float64) out.real_hint = hint->real();
    }
    return out;
  }
  place.expect_only({"dtype", "shape", "strides", "offset", "bytes", "storage", "device"});
  out.kind = Result::Tensor;
  out.dtype = dtype(place["dtype"]);
  out.shape = extents(place["shape"]);
  out.strides = extents(place["strides"]);
  if (const auto offset = place.find("offset")) out.offset = extent(*offset);
  out.bytes = place["bytes"].integer(0);
  if (const auto storage = place.find("storage")) out.storage = storage->small(0, std::numeric_limits<int>::max());
  if (const auto where = place.find("device")) out.device = device(*where);
  return out;
}

void read_marks(const JsonPlace& place, JointNode& node) {
  for (const auto& [key, set] : flag_words)
    if (const auto flag = place.find(key)) node.*set = flag->boolean();
  if (const auto list = place.find("tags"))
    for (const JsonPlace& tag : list->items()) {
      std::array<const char*, tag_words.size()> words;
      for (size_t i = 0; i < tag_words.size(); ++i) words[i] = tag_words[i].word;
      node.*tag_words[word(tag, words)].set = true;
    }
  if (const auto mark = place.find("mark")) node.mark = static_cast<JointMark>(word(*mark, mark_words));
  if (const auto policy = place.find("recompute"))
    node.recompute = static_cast<CheckpointPolicy>(word(*policy, policy_words));
  if (const auto region = place.find("region")) node.region = region->small(0, std::numeric_limits<int>::max());
  if (const auto flops = place.find("flops")) node.flops = flops->number();
  if (const auto symbols = place.find("free_symbols")) node.free_symbols = symbols->texts();
  if (const auto symbol = place.find("binds")) node.binds = symbol->text();
  if (const auto budget = place.find("memory_budget")) node.memory_budget = budget->number();
}

JointNode read_node(const JsonPlace& place, const Names& names, NodeIndex index) {
  place.expect_only({"name",        "kind",          "op",           "overload",      "attr",  "args",
                     "kwargs",      "out",           "multi_output", "aliases_input", "tags",  "mark",
                     "recompute",   "region",        "flops",        "free_symbols",  "binds", "epilogue_mutation",
                     "no_vc_check", "backward_hook", "memory_budget"});
  JointNode node;
  node.name = place["name"].text();
  node.kind = static_cast<JointKind>(word(place["kind"], kind_words));
  if (node.kind == JointKind::Call) node.op = place["op"].text();
  if (node.kind == JointKind::GetItem) node.op = "operator::getitem";
  if (node.kind == JointKind::GetAttr) node.attribute = place["attr"].text();
  if (node.is_input() || node.kind == JointKind::GetAttr) {
    if (const auto op = place.find("op")) op->fail("no operator, as this node is no call");
    if (const auto args = place.find("args")) args->fail("no arguments, as this node is no call");
    if (const auto kwargs = place.find("kwargs")) kwargs->fail("no arguments, as this node is no call");
  }
  if (const auto op = place.find("op"); op && op->text() != node.op) op->fail("\"" + node.op + "\"");
  if (const auto overload = place.find("overload")) node.overload = overload->text();
  const ArgumentReader arguments(names, index);
  if (const auto args = place.find("args")) {
    node.args.reserve(args->json().size());
    for (const JsonPlace& argument : args->items()) node.args.push_back(arguments.read(argument));
  }
  if (const auto kwargs = place.find("kwargs"))
    for (const auto& [key, value] : kwargs->members()) node.kwargs.emplace_back(key, arguments.read(value));
  node.out = result(place["out"]);
  if (const auto input = place.find("aliases_input"))
    node.aliases_input = node_named(*input, names, std::numeric_limits<NodeIndex>::max());
  read_marks(place, node);
  return node;
}

/// [low, high]; high may be "int_oo", which is no bound.
JointGraph::Symbol read_symbol(const JsonPlace& place) {
  place.expect_only({"hint", "range"});
  JointGraph::Symbol symbol;
  symbol.hint = place["hint"].integer();
  if (const auto range = place.find("range")) {
    const std::vector<JsonPlace> ends = range->items(2);
    if (ends[0].json() != "-int_oo") symbol.low = ends[0].integer();
    if (ends[1].json() != "int_oo") symbol.high = ends[1].integer();
  }
  return symbol;
}

}  // namespace

JointGraph joint_graph_from_json(const Json& json, const std::string& place) {
  return joint_graph_from_json(JsonPlace(json, place));
}

JointGraph joint_graph_from_json(const JsonPlace& place) {
  place.expect_only({"nodes", "outputs", "num_forward_outputs", "storage_bytes", "symbols"});
  JointGraph graph;
  const std::vector<JsonPlace> nodes = place["nodes"].items();
  Names names;
  names.reserve(nodes.size());
  for (size_t i = 0; i < nodes.size(); ++i) {
    const JsonPlace name = nodes[i]["name"];
    if (!names.emplace(name.text(), static_cast<NodeIndex>(i)).second) name.fail("a name that no other node has");
  }
  graph.nodes.reserve(nodes.size());
  for (size_t i = 0; i < nodes.size(); ++i)
    graph.nodes.push_back(read_node(nodes[i], names, static_cast<NodeIndex>(i)));
  for (const JsonPlace& output : place["outputs"].items())
    graph.outputs.push_back(output.is_null() ? kNoNode
                                             : node_named(output, names, std::numeric_limits<NodeIndex>::max()));
  graph.num_forward_outputs = place["num_forward_outputs"].small(0, static_cast<int>(graph.outputs.size()));
  if (const auto storages = place.find("storage_bytes")) graph.storage_bytes = storages->integers(0);
  if (const auto symbols = place.find("symbols"))
    for (const auto& [symbol, value] : symbols->members()) graph.symbols.emplace(symbol, read_symbol(value));
  try {
    verify(graph);
  } catch (const InputError& error) {
    place.refuse(error.what());
  }
  return graph;
}

}  // namespace plumbline::partition
