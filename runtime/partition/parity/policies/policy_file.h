// Loads policies by name or from JSON files; README.md describes the format.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/partition/policy/policy.h"

namespace plumbline::partition {

/// "seed" (PyTorch 2.3), "seed-nvfuser", "torch-2.11", "torch-2.15", or the path of a JSON file, which is complete or
/// gives only the differences from one of these. Throws InputError.
Policy load_policy(const std::string& name_or_path);
/// Parses a policy; `source` is the prefix of error messages.
Policy parse_policy(std::string_view json, const std::string& source);
std::vector<std::string> policy_names();

}  // namespace plumbline::partition
