#include "conformance/export/json_layout.h"

namespace plumbline::conformance {
namespace {

constexpr size_t kWidth = 120;

void lay_out(const nlohmann::ordered_json& json, size_t indent, size_t used, std::string& text) {
  const std::string line = json.dump();
  if (!json.is_structured() || json.empty() || used + line.size() <= kWidth) {
    text += line;
    return;
  }
  const std::string inner(indent + 2, ' ');
  text += json.is_array() ? "[" : "{";
  bool first = true;
  for (const auto& [key, value] : json.items()) {
    text += first ? "\n" : ",\n";
    first = false;
    text += inner;
    size_t before = inner.size();
    if (json.is_object()) {
      const std::string name = nlohmann::ordered_json(key).dump() + ": ";
      text += name;
      before += name.size();
    }
    lay_out(value, indent + 2, before + 1, text);
  }
  text += "\n" + std::string(indent, ' ') + (json.is_array() ? "]" : "}");
}

}  // namespace

std::string json_layout(const nlohmann::ordered_json& json) {
  std::string text;
  lay_out(json, 0, 0, text);
  return text + "\n";
}

}  // namespace plumbline::conformance
