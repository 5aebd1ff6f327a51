// Signature: the parameters of a model's call. Binding a call gives the model's inputs in order, by name, as Python's
// inspect.Signature.bind and apply_defaults do.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runtime/capture/capture.h"

namespace plumbline::microbatch {

enum class ParameterKind {
  PositionalOrKeyword,  ///< x; after a VarPositional it can only be given by name
  VarPositional,        ///< *rest: all remaining positional inputs, bound as rest.0, rest.1, ...
  VarKeyword,           ///< **extra: all unmatched keyword inputs, bound under their own names
};

struct Parameter {
  std::string name;
  ParameterKind kind = ParameterKind::PositionalOrKeyword;
  /// The value of an input that is not given. An undefined tensor stands for Python's None.
  std::optional<at::Tensor> default_value = std::nullopt;
};

struct Signature {
  std::vector<Parameter> parameters;

  /// From the names of placeholders: "x", "*rest", "**extra"; none has a default.
  static Signature from_placeholders(const std::vector<std::string>& names);
  /// "(x, y=default, *rest, **extra)", as in error messages.
  std::string text() const;

  /// The inputs in the order of the signature; those of a VarKeyword in the order of their names. An undefined tensor
  /// in `positional` or `keyword` counts as not given.
  ///
  /// Throws InputError with the signature: too many positional inputs, an input given twice, by position and by name,
  /// an unknown one, a missing one; a signature with a name twice, or whose **extra is not last.
  std::vector<capture::NamedTensor> bind(const std::vector<at::Tensor>& positional,
                                         const std::map<std::string, at::Tensor>& keyword = {}) const;
};

}  // namespace plumbline::microbatch
