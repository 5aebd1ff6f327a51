// The hyperparameters of the models that a backend may build from its own code instead of the exported program.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace plumbline::conformance {

/// Returns the object "architecture" of case.json for a model of the zoo: the name of its architecture and its
/// hyperparameters, which INTERPRETING.md describes. Null for a model that only program.json defines.
nlohmann::ordered_json architecture_of(const std::string& model);

}  // namespace plumbline::conformance
