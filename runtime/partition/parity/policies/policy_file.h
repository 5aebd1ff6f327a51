// Loads policies by name or from JSON files; README.md describes the format.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/partition/policy/policy.h"

namespace plumbline::partition {

/// Returns the built-in policy "seed" (PyTorch 2.3), "seed-nvfuser", "torch-2.11" or "torch-2.15", or the policy in a
/// JSON file, which is complete or has only the differences from a built-in policy. Throws InputError if the file
/// cannot be read or is malformed.
Policy load_policy(const std::string& name_or_path);
/// Parses the JSON of a policy. Throws InputError, prefixed with `source`, if the JSON is malformed.
Policy parse_policy(std::string_view json, const std::string& source);
/// Returns the names of the built-in policies.
std::vector<std::string> policy_names();

}  // namespace plumbline::partition
