#include <algorithm>

#include "runtime/error.h"
#include "runtime/graph/cursor.h"
#include "runtime/graph/dtype_names.h"
#include "runtime/graph/text.h"

namespace plumbline {
namespace {

/// What a constant argument of this type looks like, for errors.
std::string expected_constant(const c10::Type& type) {
  switch (type.kind()) {
    case c10::TypeKind::TensorType:
      return "a tensor such as %0, a number, or None";
    case c10::TypeKind::BoolType:
      return "True or False";
    case c10::TypeKind::FloatType:
      return "a number";
    case c10::TypeKind::NumberType:
      return "a number, True or False";
    case c10::TypeKind::StringType:
      return "a text in quotes";
    case c10::TypeKind::DeviceObjType:
      return "a device such as device \"cpu\"";
    case c10::TypeKind::ListType:
      return "a list in brackets (" + type.str() + ")";
    default:
      return "an integer (" + type.str() + ")";
  }
}

class Parser {
 public:
  Graph parse(std::string_view text) {
    int number = 0;
    for (size_t begin = 0; begin < text.size();) {
      size_t end = text.find('\n', begin);
      if (end == std::string_view::npos) end = text.size();
      Cursor line(text.substr(begin, end - begin), ++number);
      if (!line.done() && !line.peek("#")) parse_line(line);
      for (ValueId v : fresh_) defined_[v] = 1;
      fresh_.clear();
      begin = end + 1;
    }
    if (!returned_) throw InputError("graph text: no 'return' line");
    verify(graph_);
    return std::move(graph_);
  }

 private:
  void parse_line(Cursor& line) {
    if (line.accept("module ")) {
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
    if (!line.done()) line.fail("the end of the line");
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
    const std::string dtype = line.word("[ ");
    const auto known = dtype_from_name(dtype);
    if (!known) line.fail_word("an element type such as f32, bf16 or i64, not '" + dtype + "'");
    Value& value = graph_.values[v];
    value.dtype = *known;
    value.sizes.clear();
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
    line.expect("=");
    attribute.name = line.quoted_text();
    while (line.accept("also")) attribute.aliases.push_back(line.quoted_text());
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
    const size_t dot = name.find('.');
    node.op = c10::Dispatcher::singleton().findSchema(
        {name.substr(0, dot), dot == std::string::npos ? "" : name.substr(dot + 1)});
    if (!node.op) line.fail_word("an operator that this LibTorch knows, not '" + name + "'");
    const auto& returns = node.op->schema().returns();
    if (node.results.size() != returns.size())
      line.fail_word(std::to_string(node.results.size()) + " results, but " + name + " has " +
                     std::to_string(returns.size()));
    for (size_t i = 0; i < returns.size(); ++i)
      if (node.results[i].is_list != (returns[i].type()->kind() == c10::TypeKind::ListType))
        line.fail_word("an operator whose result " + std::to_string(i) + " is " +
                       (node.results[i].is_list ? "a list" : "one tensor") + ", not " + name);
    line.expect("(");
    const auto& parameters = node.op->schema().arguments();
    for (size_t i = 0; i < parameters.size(); ++i) {
      if (i) line.expect(",");
      node.arguments.push_back(argument(line, *parameters[i].real_type()));
    }
    line.expect(")");
    node.grad_enabled = !line.accept("no_grad");
    graph_.nodes.push_back(std::move(node));
  }

  static const c10::Type& without_optional(const c10::Type& type) {
    return type.kind() == c10::TypeKind::OptionalType ? *type.castRaw<c10::OptionalType>()->getElementType() : type;
  }

  Argument argument(Cursor& line, const c10::Type& declared) {
    const c10::Type& type = without_optional(declared);
    Argument argument;
    if (type.kind() == c10::TypeKind::TensorType && line.peek("%")) {
      argument.kind = Argument::Kind::Value;
      argument.values.push_back(use(line));
      return argument;
    }
    if (type.kind() == c10::TypeKind::ListType && line.peek("[")) {
      const c10::Type& element = *type.castRaw<c10::ListType>()->getElementType();
      const bool optional = element.kind() == c10::TypeKind::OptionalType;
      if (without_optional(element).kind() == c10::TypeKind::TensorType) {
        argument.kind = optional ? Argument::Kind::OptionalTensorList : Argument::Kind::TensorList;
        line.bracketed([&] { argument.values.push_back(use(line)); });
        return argument;
      }
    }
    argument.constant = constant(line, declared);
    // An optional or undefined tensor argument is an undefined tensor to the boxed kernel, or None where declared so.
    if (argument.constant.isNone() && declared.kind() == c10::TypeKind::TensorType) argument.constant = at::Tensor();
    return argument;
  }

  c10::IValue constant(Cursor& line, const c10::Type& declared) {
    const c10::Type& type = without_optional(declared);
    const c10::TypeKind kind = type.kind();
    const bool is_number = kind == c10::TypeKind::NumberType;
    const bool takes_any_number = is_number || kind == c10::TypeKind::TensorType;
    line.mark();
    if (line.accept("None")) {
      const bool allowed = kind == c10::TypeKind::TensorType || declared.kind() == c10::TypeKind::OptionalType;
      if (!allowed) line.fail_word(expected_constant(type));
      return {};
    }
    switch (kind) {
      case c10::TypeKind::BoolType:
      case c10::TypeKind::NumberType:
        if (line.accept("True")) return true;
        if (line.accept("False")) return false;
        if (is_number) break;
        line.fail(expected_constant(type));
      case c10::TypeKind::StringType:
        return line.quoted_text();
      case c10::TypeKind::DeviceObjType:
        return device(line);
      case c10::TypeKind::ListType:
        return list(line, type);
      case c10::TypeKind::TensorType:  // a number stands for a tensor that holds it
        if (line.accept("True")) return true;
        if (line.accept("False")) return false;
        break;
      case c10::TypeKind::GeneratorType:
        line.fail("None: an explicit generator has no text form");
      default:
        break;
    }
    if (takes_any_number && line.accept("complex ")) {
      const std::string re = line.word(" "), im = line.word(" ,])");
      double parts[2];
      if (!read_whole(re, parts[0]) || !read_whole(im, parts[1])) line.fail_word("two numbers after 'complex'");
      return c10::complex<double>(parts[0], parts[1]);
    }
    const std::string text = line.word(" ,])");
    int64_t integer = 0;
    double real = 0;
    if (kind != c10::TypeKind::FloatType && read_whole(text, integer)) return integer;
    if ((takes_any_number || kind == c10::TypeKind::FloatType) && read_whole(text, real)) return real;
    line.fail_word(expected_constant(type) + ", not '" + text + "'");
  }

  static c10::IValue device(Cursor& line) {
    line.expect("device");
    line.mark();
    const std::string name = line.quoted_text();
    try {
      return c10::Device(name);
    } catch (const c10::Error&) {
      line.fail_word("a device that LibTorch knows, not '" + name + "'");
    }
  }

  c10::IValue list(Cursor& line, const c10::Type& type) {
    const c10::TypePtr element = type.castRaw<c10::ListType>()->getElementType();
    c10::impl::GenericList values(element->kind() == c10::TypeKind::SymIntType ? c10::IntType::get() : element);
    if (!line.peek("[")) line.fail(expected_constant(type));
    line.bracketed([&] { values.push_back(constant(line, *element)); });
    return values;
  }

  Graph graph_;
  std::vector<char> defined_;   // by value, up to the line before
  std::vector<ValueId> fresh_;  // defined on this line
  bool returned_ = false;
};

}  // namespace

Graph parse_graph(std::string_view text) { return Parser().parse(text); }

}  // namespace plumbline
