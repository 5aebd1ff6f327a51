// The policies that are part of the library: the text of *.json beside this file.
#pragma once

#include <span>
#include <string_view>

namespace plumbline::partition {

struct BuiltInPolicy {
  std::string_view name, json;
};
std::span<const BuiltInPolicy> built_in_policies();

}  // namespace plumbline::partition
