// What a case stands for, as words: the values of the corpus' axes. Each is a profile of its own, and `core` shows each
// of them under every schedule.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "reference/case.h"

namespace plumbline::conformance {

struct Feature {
  std::string name;
  std::string what;  ///< one line for people
};

/// All of them, in the order of the axes.
const std::vector<Feature>& features();

/// Those of a case: from its fields, its model's, and what it says itself. In the order of features().
std::vector<std::string> features_of(const reference::Case& c);

bool has_feature(const reference::Case& c, std::string_view name);

}  // namespace plumbline::conformance
