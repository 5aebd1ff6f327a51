// The models of the corpus that a backend may build from its own code, and their hyperparameters.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace plumbline::conformance {

/// "architecture" and its hyperparameters, as INTERPRETING.md describes them; null for a model that only its program
/// defines.
nlohmann::ordered_json architecture_of(const std::string& model);

}  // namespace plumbline::conformance
