#include "conformance/proof/terms/normalisations.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/function_schema.h>

#include <map>
#include <sstream>

#include "runtime/text/significant.h"

namespace plumbline::proof {

const std::vector<Normalisation>& normalisations() {
  static const std::vector<Normalisation> all = {
      {"views", "a view (transpose, slice, expand, detach, alias) is the elements it shows of the value behind it"},
      {"copies", "a copy without a change of dtype (clone, contiguous, copy_, a message) is the value it copies"},
      {"casts", "a change of dtype is one operator, cast, whether _to_copy or copy_ makes it"},
      {"in-place",
       "an operator in place is the functional one, and its operand's memory holds the result: add_ is add"},
      {"fills",
       "zeros, ones, full, their _like and new_ forms, fill_ and zero_ are one leaf: the number, dtype, sizes"},
      {"numbers", "a number passed where a tensor is expected is that number"},
      {"zeros", "adding a tensor of zeros of the same dtype and sizes changes nothing (but the sign of a zero)"},
      {"masks", "a result of an operator with an output_mask does not depend on which other results are asked for"},
      {"unread", "batch norm in training, and its backward, compute from the micro-batch, not from running statistics"},
      {"undrawn", "an operator with a drop probability of 0, or in evaluation, draws no random numbers"},
  };
  return all;
}

Kind kind_of(std::string_view op) {
  static const std::map<std::string_view, Kind> kinds = {
      {"aten::clone", Kind::Copies},
      {"aten::contiguous", Kind::Copies},
      {"aten::copy_", Kind::Copies},
      {"aten::_to_copy", Kind::Copies},
      {"aten::detach", Kind::Copies},
      {"aten::alias", Kind::Copies},
      {"aten::lift_fresh", Kind::Copies},
      {"aten::lift", Kind::Copies},
      {"aten::zeros", Kind::Fills},
      {"aten::zeros_like", Kind::Fills},
      {"aten::new_zeros", Kind::Fills},
      {"aten::zero_", Kind::Fills},
      {"aten::ones", Kind::Fills},
      {"aten::ones_like", Kind::Fills},
      {"aten::new_ones", Kind::Fills},
      {"aten::full", Kind::Fills},
      {"aten::full_like", Kind::Fills},
      {"aten::new_full", Kind::Fills},
      {"aten::fill_", Kind::Fills},
      {"aten::scalar_tensor", Kind::Fills},
      {"aten::_efficientzerotensor", Kind::Fills},
      {"aten::empty", Kind::Reserves},
      {"aten::empty_like", Kind::Reserves},
      {"aten::empty_strided", Kind::Reserves},
      {"aten::new_empty", Kind::Reserves},
      {"aten::new_empty_strided", Kind::Reserves},
  };
  const auto known = kinds.find(op);
  return known == kinds.end() ? Kind::Computes : known->second;
}

std::string argument_text(const c10::IValue& value) {
  if (value.isDouble()) return significant(value.toDouble(), 17);
  if (value.isScalar() && !value.isBool()) return significant(value.toScalar().toDouble(), 17);
  std::ostringstream text;
  text << value;
  return text.str();
}

std::optional<double> fill_number(const c10::FunctionSchema& schema, std::span<const c10::IValue> arguments) {
  for (const char* name : {"fill_value", "value", "s"}) {
    const auto place = schema.argumentIndexWithName(name);
    if (!place || arguments[*place].isNone()) continue;
    const c10::IValue& number = arguments[*place];
    if (number.isScalar()) return number.toScalar().toDouble();
    if (number.isTensor() && number.toTensor().unsafeGetTensorImpl()->is_wrapped_number() &&
        !number.toTensor().is_complex())
      return number.toTensor().item().toDouble();
    return std::nullopt;
  }
  return schema.name().find("ones") != std::string::npos ? 1.0 : 0.0;
}

bool is_unread(const c10::FunctionSchema& schema, std::span<const c10::IValue> arguments, size_t argument) {
  if (schema.arguments()[argument].name() == "output_mask") return true;
  const bool statistics = argument == 3 || argument == 4;
  if (!statistics) return false;
  if (schema.name() == "aten::native_batch_norm") return arguments[5].toBool();
  return schema.name() == "aten::native_batch_norm_backward" && arguments[7].toBool();
}

bool draws(const c10::FunctionSchema& schema, std::span<const c10::IValue> arguments) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& name = schema.arguments()[i].name();
    const c10::IValue& value = arguments[i];
    const bool probability = name == "p" || name == "dropout_p" || name == "dropout";
    if (probability && value.isDouble() && value.toDouble() == 0.0) return false;
    if ((name == "train" || name == "training") && value.isBool() && !value.toBool()) return false;
  }
  return true;
}

std::string functional_name(const c10::FunctionSchema& schema) {
  std::string name = schema.name();
  const auto& arguments = schema.arguments();
  const bool in_place =
      !arguments.empty() && arguments[0].alias_info() != nullptr && arguments[0].alias_info()->isWrite();
  if (in_place && name.ends_with('_') && !name.ends_with("__")) name.pop_back();
  return schema.overload_name().empty() ? name : name + "." + schema.overload_name();
}

}  // namespace plumbline::proof
