// Parameters and buffers by canonical name. The canonical name of a tensor is the first under which a module registered
// it.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/ordered_dict.h>

#include <string>
#include <utility>
#include <vector>

namespace plumbline::reference {

using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;

/// The tensors in `items`, the result of a module's named_parameters() or named_buffers(), each once and in that order.
NamedTensors first_names(const torch::OrderedDict<std::string, at::Tensor>& items);

/// Executes a Freeze or Unfreeze step: sets whether the parameters whose names match `pattern` (fnmatch; `*` also
/// matches dots) require gradients from here on. Returns the matching names, in the given order.
std::vector<std::string> set_trainable(const NamedTensors& parameters, const std::string& pattern, bool trainable);

}  // namespace plumbline::reference
