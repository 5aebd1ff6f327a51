// What somebody may have meant by a name that there is not.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace plumbline {

/// Of `names`, at most three that are nearest to `asked`, the nearest first. Letters to insert, delete, replace, or to
/// swap with their neighbour are counted, to a name or to some of its words ("mlp-sum" of "exact-mlp-sum"); of names
/// that are equally near by their words the one nearest as a whole comes first, then the one that stands first.
std::vector<std::string> near_names(const std::vector<std::string>& names, std::string_view asked);

}  // namespace plumbline
