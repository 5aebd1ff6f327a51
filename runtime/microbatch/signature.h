// Signature: how a model may be called. Binding a call to it gives the model's inputs in order, by name, as Python's
// inspect.Signature.bind and apply_defaults do.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runtime/capture/capture.h"

namespace plumbline::microbatch {

enum class ParameterKind {
  PositionalOrKeyword,  ///< x; behind a VarPositional it can only be given by name
  VarPositional,        ///< *rest: all positional inputs that are left, bound as rest.0, rest.1, ...
  VarKeyword,           ///< **extra: all keyword inputs that nothing else takes, bound under their own names
};

struct Parameter {
  std::string name;
  ParameterKind kind = ParameterKind::PositionalOrKeyword;
  /// What an input that is not given is. An undefined tensor stands for Python's None.
  std::optional<at::Tensor> default_value = std::nullopt;
};

struct Signature {
  std::vector<Parameter> parameters;

  /// From the names of placeholders: "x", "*rest", "**extra"; none has a default.
  static Signature from_placeholders(const std::vector<std::string>& names);
  /// "(x, y=default, *rest, **extra)", as errors show it.
  std::string text() const;

  /// The inputs in the order of the signature; those of a VarKeyword in the order of their names. An undefined tensor
  /// in `positional` or `keyword` counts as not given.
  ///
  /// Throws InputError naming what the signature takes: too many positional inputs, one given twice, by position and by
  /// name, one that is unknown, one that is missing; a signature with a name twice, or whose **extra is not last.
  std::vector<capture::NamedTensor> bind(const std::vector<at::Tensor>& positional,
                                         const std::map<std::string, at::Tensor>& keyword = {}) const;
};

}  // namespace plumbline::microbatch
