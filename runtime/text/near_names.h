// Suggestions for a name that does not exist.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace plumbline {

/// At most three of `names`, nearest to `asked` first. The distance counts letters inserted, deleted, replaced or
/// swapped with their neighbour, to the whole name or to some consecutive words of it ("mlp-sum" of "exact-mlp-sum").
/// Ties in the distance by words go to the nearer whole name, then to the earlier one in `names`.
std::vector<std::string> near_names(const std::vector<std::string>& names, std::string_view asked);

}  // namespace plumbline
