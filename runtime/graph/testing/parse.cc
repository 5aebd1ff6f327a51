#include "runtime/graph/testing/parse.h"

#include <algorithm>
#include <optional>

#include "runtime/error.h"
#include "runtime/graph/dtype_names.h"
#include "runtime/graph/io/operator_named.h"
#include "runtime/graph/io/text.h"
#include "runtime/graph/schema_types.h"
#include "runtime/graph/testing/cursor.h"
#include "runtime/graph/testing/parse_argument.h"

namespace plumbline::graph {
namespace {

/// The lines of a text that say something, with their numbers.
class Lines {
 public:
  explicit Lines(std::string_view text) : text_(text) {}

  std::optional<Cursor> next() {
    while (begin_ < text_.size()) {
      const size_t end = std::min(text_.find('\n', begin_), text_.size());
      Cursor line(text_.substr(begin_, end - begin_), ++number_);
      begin_ = end + 1;
      if (!line.done() && !line.peek("#")) return line;
    }
    return std::nullopt;
  }

 private:
  std::string_view text_;
  size_t begin_ = 0;
  int number_ = 0;
};

const char* kind_name(ValueKind kind) {
  switch (kind) {
    case ValueKind::Tensor:
      return "a tensor";
    case ValueKind::Int:
      return "an int";
    case ValueKind::Float:
      return "a float";
    case ValueKind::Bool:
      return "a bool";
  }
  return "";
}

/// Whether a value of this kind can be an argument or a result of this type. Operators of our own take numbers wherever
/// they take tensors: they pass values on (a stage, a branch).
bool is_of_type(ValueKind kind, const c10::Type& declared, bool own) {
  const c10::Type& type = without_optional(declared);
  switch (type.kind()) {
    case c10::TypeKind::TensorType:
      return kind == ValueKind::Tensor || own;
    case c10::TypeKind::IntType:
    case c10::TypeKind::SymIntType:
      return kind == ValueKind::Int;
    case c10::TypeKind::FloatType:
    case c10::TypeKind::SymFloatType:
      return kind == ValueKind::Float;
    case c10::TypeKind::BoolType:
    case c10::TypeKind::SymBoolType:
      return kind == ValueKind::Bool;
    case c10::TypeKind::NumberType:
      return kind != ValueKind::Tensor;
    default:
      return false;
  }
}

bool is_cond(const Node& node) { return !node.is_split() && node.op->operator_name().name == "plumbline::cond"; }

class Parser {
 public:
  explicit Parser(Lines& lines) : lines_(lines) {}

  /// With `opening`, the line that opens a branch: up to its closing brace.
  Graph parse(const Cursor* opening = nullptr) {
    bool closed = false;
    while (!closed) {
      std::optional<Cursor> line = lines_.next();
      if (!line) break;
      closed = opening && !wants_branch() && line->accept("}");
      if (closed && !returned_) line->fail_word("a 'return' line before '}'");
      if (!closed) parse_line(*line);
      if (!line->done()) line->fail("the end of the line");
      for (ValueId v : fresh_) defined_[v] = 1;
      fresh_.clear();
    }
    if (opening && !closed) opening->fail("a '}' that closes this branch");
    if (wants_branch()) throw InputError("graph text: the plumbline::cond at its end lacks a branch");
    if (!returned_) throw InputError("graph text: no 'return' line");
    verify(graph_);
    return std::move(graph_);
  }

 private:
  void parse_line(Cursor& line) {
    if (wants_branch()) {
      branch(line);
    } else if (line.accept("module ")) {
      ModuleCall module;
      module.name = line.quoted_text();
      module.type = line.quoted_text();
      module.begin = node_number(line, 0);
      module.end = node_number(line, module.begin);
      graph_.module_calls.push_back(std::move(module));
    } else if (returned_) {
      line.fail("a module line, or nothing, after 'return'");
    } else if (line.accept("input ")) {
      if (line.peek("None")) line.fail("a value such as %0");
      const ValueId value = definition(line);
      line.expect("=");
      graph_.inputs.push_back({line.quoted_text(), value});
    } else if (line.accept("parameter ")) {
      attribute(line, AttributeKind::Parameter);
    } else if (line.accept("buffer ")) {
      attribute(line, AttributeKind::Buffer);
    } else if (line.accept("constant ")) {
      attribute(line, AttributeKind::Constant);
    } else if (line.accept("autocast ")) {
      region(line);
    } else if (line.accept("pipe_split")) {
      graph_.nodes.emplace_back();
    } else if (line.accept("return")) {
      returned_ = true;
      while (!line.done()) {
        graph_.outputs.push_back(use(line));
        if (!line.accept(",")) break;
      }
    } else {
      call(line);
    }
  }

  /// A cond is followed by its two branches.
  bool wants_branch() const {
    return !graph_.nodes.empty() && is_cond(graph_.nodes.back()) && graph_.nodes.back().branches.size() < 2;
  }

  void branch(Cursor& line) {
    Node& cond = graph_.nodes.back();
    const char* const word = cond.branches.empty() ? "then {" : "else {";
    line.mark();
    if (!line.accept(word)) line.fail("'" + std::string(word) + "', a branch of the plumbline::cond above");
    if (!line.done()) line.fail("the end of the line");
    Graph graph = Parser(lines_).parse(&line);
    const auto must_match = [&](size_t count, size_t wanted, const std::string& what) {
      if (count != wanted)
        line.fail_word("a branch with as many " + what + " (" + std::to_string(wanted) + "), not " +
                       std::to_string(count));
    };
    must_match(graph.inputs.size(), cond.arguments[1].values.size(), "inputs as the call has operands");
    must_match(graph.outputs.size(), cond.results[0].values.size(), "outputs as the call has results");
    cond.branches.push_back(std::make_shared<const Graph>(std::move(graph)));
  }

  void region(Cursor& line) {
    const auto number = static_cast<int64_t>(graph_.autocast.size());
    if (line.integer() != number) line.fail_word("autocast " + std::to_string(number) + ", the next region");
    line.expect("=");
    AutocastRegion region;
    const std::string device = line.word(" ");
    try {
      region.device = c10::Device(device).type();
    } catch (const c10::Error&) {
      line.fail_word("a type of device such as cpu or cuda, not '" + device + "'");
    }
    if (device.find(':') != std::string::npos)
      line.fail_word("a type of device without a number, not '" + device + "'");
    const std::string dtype = line.word(" ");
    region.dtype = element_type(line, dtype);
    region.enabled = !line.accept("disabled");
    region.cache = !line.accept("no_cache");
    if (line.accept("in")) region.outer = region_number(line);
    graph_.autocast.push_back(region);
  }

  int32_t region_number(Cursor& line) {
    const int64_t n = line.integer();
    if (n < 0 || n >= static_cast<int64_t>(graph_.autocast.size()))
      line.fail_word("an autocast region that a line above describes, not " + std::to_string(n));
    return static_cast<int32_t>(n);
  }

  static at::ScalarType element_type(const Cursor& line, const std::string& name) {
    const auto known = dtype_from_name(name);
    if (!known) line.fail_word("an element type such as f32, bf16 or i64, not '" + name + "'");
    return *known;
  }

  int32_t node_number(Cursor& line, int64_t least) {
    const int64_t n = line.integer();
    const auto most = static_cast<int64_t>(graph_.nodes.size());
    if (n < least || n > most)
      line.fail_word("a node number between " + std::to_string(least) + " and " + std::to_string(most));
    return static_cast<int32_t>(n);
  }

  ValueId id(Cursor& line) {
    line.expect("%");
    const int64_t v = line.integer();
    if (v < 0 || v > 10'000'000) line.fail_word("a value number between 0 and 10000000");
    if (v >= static_cast<int64_t>(graph_.values.size())) {
      graph_.values.resize(v + 1);
      defined_.resize(v + 1, 0);
    }
    return static_cast<ValueId>(v);
  }
  ValueId use(Cursor& line) {
    if (line.accept("None")) return kNoValue;
    const ValueId v = id(line);
    if (!defined_[v]) line.fail_word("a value that a line above defines, not %" + std::to_string(v));
    return v;
  }

  ValueId definition(Cursor& line) {
    if (line.accept("None")) return kNoValue;
    const ValueId v = id(line);
    if (defined_[v] || std::count(fresh_.begin(), fresh_.end(), v))
      line.fail_word("a new value; %" + std::to_string(v) + " is defined already");
    fresh_.push_back(v);
    line.expect(":");
    const std::string type = line.word("[ ,]");
    Value& value = graph_.values[v];
    if (!line.peek("[")) {
      for (const ValueKind kind : {ValueKind::Int, ValueKind::Float, ValueKind::Bool})
        if (const Value number{number_dtype(kind), {}, false, -1, kind}; value_text(number) == type) {
          value = number;
          return v;
        }
    }
    value.dtype = element_type(line, type);
    line.bracketed([&] {
      value.sizes.push_back(line.integer());
      if (value.sizes.back() < 0) line.fail_word("a size of at least 0");
    });
    value.requires_grad = line.accept("*");
    return v;
  }

  void attribute(Cursor& line, AttributeKind kind) {
    Attribute attribute;
    attribute.kind = kind;
    if (!line.peek("=")) attribute.value = definition(line);
    if (attribute.value != kNoValue && graph_.values[attribute.value].kind != ValueKind::Tensor)
      line.fail_word("a tensor such as f32[2]");
    line.expect("=");
    attribute.name = line.quoted_text();
    while (line.accept("also")) attribute.aliases.push_back(line.quoted_text());
    attribute.persistent = !line.accept("transient");
    graph_.attributes.push_back(std::move(attribute));
  }

  Result result(Cursor& line) {
    Result result;
    if (!line.peek("[")) {
      result.values.push_back(definition(line));
      return result;
    }
    result.is_list = true;
    line.bracketed([&] { result.values.push_back(definition(line)); });
    return result;
  }

  void call(Cursor& line) {
    Node node;
    if (line.peek("%") || line.peek("[") || line.peek("None")) {
      do node.results.push_back(result(line));
      while (line.accept(","));
      line.expect("=");
    }
    const std::string name = line.word("( ");
    node.op = operator_named(name);
    if (!node.op) line.fail_word("an operator that this LibTorch knows, not '" + name + "'");
    const auto& returns = node.op->schema().returns();
    if (node.results.size() != returns.size())
      line.fail_word(std::to_string(node.results.size()) + " results, but " + name + " has " +
                     std::to_string(returns.size()));
    const bool own = name.starts_with("plumbline::");
    for (size_t i = 0; i < returns.size(); ++i) check_result(line, node, i, name, own);
    line.expect("(");
    const auto& parameters = node.op->schema().arguments();
    const ReadValue read_value = [&](Cursor& at, const c10::Type& type) {
      const ValueId v = use(at);
      if (v != kNoValue && !is_of_type(graph_.values[v].kind, type, own))
        at.fail_word("a value of type " + type.str() + "; %" + std::to_string(v) + " is " +
                     kind_name(graph_.values[v].kind));
      return v;
    };
    for (size_t i = 0; i < parameters.size(); ++i) {
      if (i) line.expect(",");
      node.arguments.push_back(parse_argument(line, *parameters[i].real_type(), read_value));
    }
    line.expect(")");
    node.grad_enabled = !line.accept("no_grad");
    if (line.accept("autocast")) node.autocast = region_number(line);
    graph_.nodes.push_back(std::move(node));
  }

  void check_result(const Cursor& line, const Node& node, size_t i, const std::string& name, bool own) const {
    const c10::Type* type = node.op->schema().returns()[i].type().get();
    const Result& result = node.results[i];
    if (result.is_list != (type->kind() == c10::TypeKind::ListType))
      line.fail_word("an operator whose result " + std::to_string(i) + " is " +
                     (result.is_list ? "a list" : "one tensor or number") + ", not " + name);
    if (result.is_list) type = type->castRaw<c10::ListType>()->getElementType().get();
    for (ValueId v : result.values)
      if (v != kNoValue && !is_of_type(graph_.values[v].kind, *type, own))
        line.fail_word("an operator whose result %" + std::to_string(v) + " is " + kind_name(graph_.values[v].kind) +
                       "; that of " + name + " is of type " + type->str());
  }

  Lines& lines_;
  Graph graph_;
  std::vector<char> defined_;   // by value, up to the line before
  std::vector<ValueId> fresh_;  // defined on this line
  bool returned_ = false;
};

}  // namespace

Graph parse_graph(std::string_view text) {
  Lines lines(text);
  return Parser(lines).parse();
}

}  // namespace plumbline::graph
