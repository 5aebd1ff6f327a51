// A JSON layout for reading and for diff: a value that fits is on one line; a longer one has one item per line.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace plumbline::conformance {

/// Ends in a line feed. The same document gives the same text.
std::string json_layout(const nlohmann::ordered_json& json);

}  // namespace plumbline::conformance
