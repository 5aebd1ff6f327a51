// A JSON layout for people and for diff: a value that fits into 120 columns takes one line; a longer array or object
// has one item per line, indented by two columns.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace plumbline::conformance {

/// Returns the text, which ends in a line feed. Equal documents have equal texts.
std::string json_layout(const nlohmann::ordered_json& json);

}  // namespace plumbline::conformance
