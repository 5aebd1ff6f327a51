// The names of the model zoo, for code that lists or checks cases without torch.
#pragma once

#include <string>
#include <vector>

namespace plumbline::models {

/// Every name that make_model() of zoo.h accepts, in alphabetical order.
const std::vector<std::string>& model_names();

/// Whether the model's data are whole numbers and all its sums are proven representable (see exact_test.cc).
bool is_exact_model(const std::string& name);

}  // namespace plumbline::models
