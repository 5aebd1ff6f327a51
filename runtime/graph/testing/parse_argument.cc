#include "runtime/graph/testing/parse_argument.h"

#include <algorithm>

#include "runtime/graph/schema_types.h"

namespace plumbline::graph {
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
    case c10::TypeKind::ComplexType:
      return "a complex number such as complex(0.0, 1.0)";
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

bool is_number(const c10::Type& type) {
  switch (type.kind()) {
    case c10::TypeKind::IntType:
    case c10::TypeKind::SymIntType:
    case c10::TypeKind::FloatType:
    case c10::TypeKind::BoolType:
    case c10::TypeKind::NumberType:
      return true;
    default:
      return false;
  }
}

/// Holds the place of a value in a list of numbers.
c10::IValue zero(const c10::Type& type) {
  if (type.kind() == c10::TypeKind::FloatType) return 0.0;
  if (type.kind() == c10::TypeKind::BoolType) return false;
  return int64_t{0};
}

class ArgumentParser {
 public:
  ArgumentParser(Cursor& line, const ReadValue& read_value) : line_(line), read_value_(read_value) {}

  Argument argument(const c10::Type& declared) {
    const c10::Type& type = without_optional(declared);
    if (line_.peek("%") && (type.kind() == c10::TypeKind::TensorType || is_number(type)))
      return {Argument::Kind::Value, {}, {read_value_(line_, type)}};
    if (line_.peek("[") && type.kind() == c10::TypeKind::ListType) return list_argument(type);
    Argument argument;
    argument.constant = constant(declared);
    // An optional or undefined tensor argument is an undefined tensor to the boxed kernel, or None where declared so.
    if (argument.constant.isNone() && declared.kind() == c10::TypeKind::TensorType) argument.constant = at::Tensor();
    return argument;
  }

 private:
  Argument list_argument(const c10::Type& type) {
    const c10::Type& element = *type.castRaw<c10::ListType>()->getElementType();
    const c10::Type& item = without_optional(element);
    Argument argument;
    if (item.kind() == c10::TypeKind::TensorType) {
      const bool optional = element.kind() == c10::TypeKind::OptionalType;
      argument.kind = optional ? Argument::Kind::OptionalTensorList : Argument::Kind::TensorList;
      line_.bracketed([&] { argument.values.push_back(read_value_(line_, item)); });
      return argument;
    }
    argument.constant = list(type, &argument.values);
    if (std::ranges::all_of(argument.values, [](ValueId v) { return v == kNoValue; }))
      argument.values.clear();
    else
      argument.kind = Argument::Kind::NumberList;
    return argument;
  }

  c10::IValue constant(const c10::Type& declared) {
    const c10::Type& type = without_optional(declared);
    const c10::TypeKind kind = type.kind();
    line_.mark();
    if (line_.accept("None")) {
      const bool allowed = kind == c10::TypeKind::TensorType || declared.kind() == c10::TypeKind::OptionalType;
      if (!allowed) line_.fail_word(expected_constant(type));
      return {};
    }
    switch (kind) {
      case c10::TypeKind::BoolType:
        if (line_.accept("True")) return true;
        if (line_.accept("False")) return false;
        line_.fail(expected_constant(type));
      case c10::TypeKind::NumberType:
      case c10::TypeKind::TensorType:  // a number stands for a tensor that holds it
        if (line_.accept("True")) return true;
        if (line_.accept("False")) return false;
        if (line_.peek("complex")) return complex();
        break;
      case c10::TypeKind::ComplexType:
        if (line_.peek("complex")) return complex();
        line_.fail(expected_constant(type));
      case c10::TypeKind::StringType:
        return line_.quoted_text();
      case c10::TypeKind::DeviceObjType:
        return device();
      case c10::TypeKind::ListType:
        return list(type, nullptr);
      case c10::TypeKind::GeneratorType:
        line_.fail("None: an explicit generator has no text form");
      default:
        break;
    }
    const std::string text = line_.word(" ,])");
    const bool takes_real =
        kind == c10::TypeKind::NumberType || kind == c10::TypeKind::TensorType || kind == c10::TypeKind::FloatType;
    if (kind != c10::TypeKind::FloatType)
      if (const auto integer = parse_number<int64_t>(text)) return *integer;
    if (takes_real)
      if (const auto real = parse_number<double>(text)) return *real;
    line_.fail_word(expected_constant(type) + ", not '" + text + "'");
  }

  double real_number() {
    const std::string text = line_.word(" ,])");
    const std::optional<double> value = parse_number<double>(text);
    if (!value) line_.fail_word("a number, not '" + text + "'");
    return *value;
  }

  c10::IValue complex() {
    line_.expect("complex");
    line_.expect("(");
    const double real = real_number();
    line_.expect(",");
    const double imaginary = real_number();
    line_.expect(")");
    return c10::complex<double>(real, imaginary);
  }

  c10::IValue device() {
    line_.expect("device");
    line_.mark();
    const std::string name = line_.quoted_text();
    try {
      return c10::Device(name);
    } catch (const c10::Error&) {
      line_.fail_word("a device that LibTorch knows, not '" + name + "'");
    }
  }

  /// A list of constants; with `values`, of numbers some of which may be values.
  c10::IValue list(const c10::Type& type, std::vector<ValueId>* values) {
    const c10::TypePtr element = type.castRaw<c10::ListType>()->getElementType();
    const c10::Type& item = without_optional(*element);
    c10::impl::GenericList constants(element->kind() == c10::TypeKind::SymIntType ? c10::IntType::get() : element);
    if (!line_.peek("[")) line_.fail(expected_constant(type));
    line_.bracketed([&] {
      const bool is_value = values && is_number(item) && line_.peek("%");
      if (values) values->push_back(is_value ? read_value_(line_, item) : kNoValue);
      constants.push_back(is_value ? zero(item) : constant(*element));
    });
    return constants;
  }

  Cursor& line_;
  const ReadValue& read_value_;
};

}  // namespace

Argument parse_argument(Cursor& line, const c10::Type& declared, const ReadValue& read_value) {
  return ArgumentParser(line, read_value).argument(declared);
}

}  // namespace plumbline::graph
