// The names of the model zoo, for code that lists or checks cases without torch.
#pragma once

#include <string>
#include <vector>

namespace plumbline::models {

/// The names of the zoo's models, in alphabetical order. make_model() of zoo.h accepts these and the names that
/// add_model() registered.
const std::vector<std::string>& model_names();

/// Whether the name begins with "exact-". Such a model of the zoo has whole numbers as data, and all its sums are
/// proven representable (see exact_test.cc).
bool is_exact_model(const std::string& name);

}  // namespace plumbline::models
