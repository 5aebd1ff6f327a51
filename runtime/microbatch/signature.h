// Signature: the parameters of a model's forward. bind() assigns the inputs of a call to them, as Python's
// inspect.Signature.bind and apply_defaults do.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runtime/capture/capture.h"

namespace plumbline::microbatch {

enum class ParameterKind {
  PositionalOrKeyword,  ///< x; after a VarPositional it can be given by name only
  VarPositional,        ///< *rest: all remaining positional inputs, bound as rest.0, rest.1, ...; at most one
  VarKeyword,           ///< **extra: all unmatched keyword inputs, bound under their own names; must be last
};

struct Parameter {
  std::string name;
  ParameterKind kind = ParameterKind::PositionalOrKeyword;
  /// The value of an input that is not given; an undefined tensor is Python's None. Empty: the input is required.
  std::optional<at::Tensor> default_value = std::nullopt;
};

struct Signature {
  std::vector<Parameter> parameters;

  /// Makes a signature without defaults from the names of placeholders: "x", "*rest", "**extra".
  static Signature from_placeholders(const std::vector<std::string>& names);
  /// The signature as in error messages: "(x, y=default, *rest, **extra)".
  std::string text() const;

  /// Returns the inputs in the order of the signature; the inputs of a VarKeyword are sorted by name. An undefined
  /// tensor for a PositionalOrKeyword parameter counts as not given.
  ///
  /// Throws InputError with the signature for too many positional inputs, an input that is given by position and by
  /// name, an unknown input, a missing input, and a signature that has a name twice, two VarPositional, or a VarKeyword
  /// that is not last.
  std::vector<capture::NamedTensor> bind(const std::vector<at::Tensor>& positional,
                                         const std::map<std::string, at::Tensor>& keyword = {}) const;
};

}  // namespace plumbline::microbatch
