// Suggests names in place of one that does not exist.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace plumbline {

/// Returns the three of `names` nearest to `asked` (fewer if there are fewer), nearest first, however far they are. The
/// distance is the number of letters to insert, delete, replace or swap with a neighbour, to the whole name or to
/// consecutive words of it, separated by "-" ("mlp-sum" of "exact-mlp-sum"). Among names at the same distance, the
/// nearer whole name is first, then the earlier in `names`.
std::vector<std::string> near_names(const std::vector<std::string>& names, std::string_view asked);

}  // namespace plumbline
