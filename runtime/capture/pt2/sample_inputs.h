// The inputs with which a program was exported; its archive keeps them as a pickle.
#pragma once

#include <ATen/core/ivalue.h>

#include <string>
#include <vector>

#include "runtime/capture/pt2/archive.h"
#include "runtime/capture/pt2/tree_spec.h"

namespace plumbline::capture::pt2 {

struct SampleInputs {
  std::vector<c10::IValue> leaves;  ///< in the order of the program's inputs, constants among them
  std::string error;                ///< why there are none; empty otherwise
};

/// `in_spec` is that of (args, kwargs): keyword inputs may be saved in another order than the program's. Never throws
/// for the content of the pickle (a Python class that only Python can unpickle, another nesting).
SampleInputs read_sample_inputs(Archive& archive, const TreeSpec& in_spec);

}  // namespace plumbline::capture::pt2
