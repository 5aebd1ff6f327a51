// The models of the corpus that somebody may build from code of his own, and the numbers that they are built with.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace plumbline::conformance {

/// "architecture" and its numbers, as INTERPRETING.md describes them; null for a model that is known by its program
/// only.
nlohmann::ordered_json architecture_of(const std::string& model);

}  // namespace plumbline::conformance
