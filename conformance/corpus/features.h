// The features of a case: named values on the axes of the corpus. Each is also a profile, and `core` covers each of
// them
// under every schedule.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "reference/case.h"

namespace plumbline::conformance {

struct Feature {
  std::string name;
  std::string what;  ///< its description, one line
};

/// All of them, in the order of the axes.
const std::vector<Feature>& features();

/// The features of a case, from its fields, its model and its list `features`, in the order of features().
std::vector<std::string> features_of(const reference::Case& c);

bool has_feature(const reference::Case& c, std::string_view name);

}  // namespace plumbline::conformance
