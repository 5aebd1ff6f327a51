// JSON for people and for diff: what fits stands on one line, what does not is broken up, one item a line.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace plumbline::conformance {

/// Ends in a line feed. The same document gives the same text.
std::string json_layout(const nlohmann::ordered_json& json);

}  // namespace plumbline::conformance
