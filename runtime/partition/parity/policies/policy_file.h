// Policies by name, and from JSON files; README.md describes the form.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/partition/policy/policy.h"

namespace plumbline::partition {

/// "seed" (PyTorch 2.3), "seed-nvfuser", "torch-2.11", "torch-2.15", or the path of a JSON file, which says everything
/// or only what differs from one of these. Throws InputError.
Policy load_policy(const std::string& name_or_path);
/// A policy given as text; `source` opens the errors.
Policy parse_policy(std::string_view json, const std::string& source);
std::vector<std::string> policy_names();

}  // namespace plumbline::partition
