// Parameters and buffers by canonical name: the first under which a module registered a tensor.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/ordered_dict.h>

#include <string>
#include <utility>
#include <vector>

namespace plumbline::reference {

using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;

/// Each tensor once, of what a module's named_parameters() or named_buffers() lists.
NamedTensors first_names(const torch::OrderedDict<std::string, at::Tensor>& items);

/// Executes a Freeze or an Unfreeze step: sets whether the parameters whose names match `pattern` (fnmatch) require
/// gradients from here on. Returns their names.
std::vector<std::string> set_trainable(const NamedTensors& parameters, const std::string& pattern, bool trainable);

}  // namespace plumbline::reference
