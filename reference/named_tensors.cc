#include "reference/named_tensors.h"

#include <fnmatch.h>

#include <set>

namespace plumbline::reference {

NamedTensors first_names(const torch::OrderedDict<std::string, at::Tensor>& items) {
  NamedTensors named;
  std::set<const void*> seen;
  for (const auto& item : items)
    if (seen.insert(item.value().unsafeGetTensorImpl()).second) named.emplace_back(item.key(), item.value());
  return named;
}

std::vector<std::string> set_trainable(const NamedTensors& parameters, const std::string& pattern, bool trainable) {
  std::vector<std::string> names;
  for (const auto& [name, parameter] : parameters) {
    if (fnmatch(pattern.c_str(), name.c_str(), 0) != 0) continue;
    parameter.set_requires_grad(trainable);
    names.push_back(name);
  }
  return names;
}

}  // namespace plumbline::reference
