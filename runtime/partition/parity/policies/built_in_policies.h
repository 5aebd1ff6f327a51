// The policies that are compiled into the library: the text of each *.json file beside this header.
#pragma once

#include <span>
#include <string_view>

namespace plumbline::partition {

struct BuiltInPolicy {
  std::string_view name, json;  ///< valid until the program ends
};
std::span<const BuiltInPolicy> built_in_policies();

}  // namespace plumbline::partition
