// The inputs with which a program was exported, read from the pickle in its archive.
#pragma once

#include <ATen/core/ivalue.h>

#include <string>
#include <vector>

#include "runtime/capture/pt2/archive.h"
#include "runtime/capture/pt2/tree_spec.h"

namespace plumbline::capture::pt2 {

struct SampleInputs {
  std::vector<c10::IValue>
      leaves;         ///< in the order of the program's flat inputs, constants included; empty after an error
  std::string error;  ///< the reason why the samples cannot be read; empty on success
};

/// Reads the samples. `in_spec` is the tree spec of (args, kwargs), since keyword inputs may be saved in another order
/// than the program's. A missing entry or an unusable pickle (a class that only Python can unpickle, another nesting)
/// sets `error`; a damaged entry throws InputError (Archive::read()).
SampleInputs read_sample_inputs(Archive& archive, const TreeSpec& in_spec);

}  // namespace plumbline::capture::pt2
