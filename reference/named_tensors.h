// Parameters and buffers by canonical name: the first name under which a module registered the tensor.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/ordered_dict.h>

#include <string>
#include <utility>
#include <vector>

namespace plumbline::reference {

using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;

/// The tensors that a module's named_parameters() or named_buffers() lists, each once.
NamedTensors first_names(const torch::OrderedDict<std::string, at::Tensor>& items);

/// Executes a Freeze or Unfreeze step: sets whether the parameters whose names match `pattern` (fnmatch) require
/// gradients from here on. Returns their names.
std::vector<std::string> set_trainable(const NamedTensors& parameters, const std::string& pattern, bool trainable);

}  // namespace plumbline::reference
