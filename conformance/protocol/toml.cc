#include "conformance/protocol/toml.h"

#include "runtime/error.h"
#include "runtime/text/one_line.h"

namespace plumbline::conformance {
namespace {

std::string place(const std::string& file, const toml::source_region& source) {
  return file + ":" + std::to_string(source.begin.line);
}

}  // namespace

std::string TomlPlace::text() const { return place(file_, node_->source()); }

void TomlPlace::refuse(const std::string& what) const { throw InputError(one_line(text() + ": " + what)); }

toml::table parse_toml(const std::string& text, const std::string& file) try {
  return toml::parse(text, file);
} catch (const toml::parse_error& error) {
  throw InputError(one_line(place(file, error.source()) + ": not TOML: " + std::string(error.description())));
}

}  // namespace plumbline::conformance
