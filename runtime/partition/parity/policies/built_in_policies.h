// The policies that are part of the library: *.json beside this file, as text.
#pragma once

#include <span>
#include <string_view>

namespace plumbline::partition {

struct BuiltInPolicy {
  std::string_view name, json;
};
std::span<const BuiltInPolicy> built_in_policies();

}  // namespace plumbline::partition
