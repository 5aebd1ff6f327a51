// The normalisations: operators that a proof takes for another one, or for none. Each is sound for the values; none
// changes an order of computation. A change of this file raises kNormalisationsVersion.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace c10 {
struct FunctionSchema;
struct IValue;
}  // namespace c10

namespace plumbline::proof {

inline constexpr int kNormalisationsVersion = 1;

struct Normalisation {
  std::string name, what;
};

/// All of them, for the certificate.
const std::vector<Normalisation>& normalisations();

enum class Kind {
  Computes,  ///< a term of its own
  Copies,    ///< the value of its (last) tensor operand, if the dtype is the same
  Fills,     ///< every element is one number
  Reserves,  ///< memory without content
};

/// `op`: the operator's name without its overload.
Kind kind_of(std::string_view op);

/// Equal arguments that are no tensors have equal texts.
std::string argument_text(const c10::IValue& value);

/// The number with which a call of an operator that Fills fills; nullopt if it is the content of a tensor.
std::optional<double> fill_number(const c10::FunctionSchema& schema, std::span<const c10::IValue> arguments);

/// Whether no result of this call depends on argument number `argument`.
bool is_unread(const c10::FunctionSchema& schema, std::span<const c10::IValue> arguments, size_t argument);

/// Whether a call of an operator that may draw random numbers draws some.
bool draws(const c10::FunctionSchema& schema, std::span<const c10::IValue> arguments);

/// The name of the functional form: "aten::add_.Tensor" is "aten::add.Tensor".
std::string functional_name(const c10::FunctionSchema& schema);

}  // namespace plumbline::proof
