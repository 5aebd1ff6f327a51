// The features of cases: names such as "uneven" or "bf16" for the properties that a case exercises. Each feature is
// also a profile (corpus.h), and the profile `core` runs each feature under every schedule that can execute it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "reference/case.h"

namespace plumbline::conformance {

struct Feature {
  std::string name;
  std::string what;  ///< a description, one line
};

/// All features in a fixed order: truth, model, values between stages, micro-batches, loss, dtype, state, steps.
const std::vector<Feature>& features();

/// Returns the names of the case's features in the order of features(). They follow from the fields of the case, from
/// its model and from its list `features`; aborts if that list has a name that features() lacks.
std::vector<std::string> features_of(const reference::Case& c);

/// Whether features_of(c) contains `name`; false for an unknown name.
bool has_feature(const reference::Case& c, std::string_view name);

}  // namespace plumbline::conformance
