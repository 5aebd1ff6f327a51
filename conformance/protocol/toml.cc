#include "conformance/protocol/toml.h"

#include <algorithm>
#include <cmath>
#include <sstream>

#include "runtime/error.h"
#include "runtime/text/join.h"
#include "runtime/text/near_names.h"
#include "runtime/text/one_line.h"

namespace plumbline::conformance {
namespace {

std::string place(const std::string& file, const toml::source_region& source) {
  return file + ":" + std::to_string(source.begin.line);
}

std::string shown(const toml::node& node) {
  if (node.is_table()) return "a table";
  if (node.is_array()) return node.as_array()->empty() ? "an empty list" : "a list";
  if (const auto* text = node.as_string()) return text->get().empty() ? "an empty string" : '"' + text->get() + '"';
  std::ostringstream out;
  node.visit([&](const auto& value) {
    if constexpr (toml::is_value<decltype(value)>) out << value.get();
  });
  if (node.is_floating_point() && out.str().find_first_not_of("-0123456789") == std::string::npos)
    out << ".0";  // which is no whole number
  return out.str();
}

/// "expected one of a, b, c"; of many words the nearest to `asked`.
std::string accepted(const std::vector<std::string>& words, std::string_view asked) {
  constexpr size_t kMany = 8;
  return words.size() <= kMany ? "expected one of " + join(words) : "nearest: " + join(near_names(words, asked));
}

/// The index behind the string that begins at `begin`; one of a line ends there at the latest.
size_t end_of_string(std::string_view text, size_t begin) {
  const char quote = text[begin];
  const std::string three(3, quote);
  const bool is_of_lines = text.substr(begin, 3) == three;
  const std::string_view mark = std::string_view(three).substr(0, is_of_lines ? 3 : 1);
  for (size_t i = begin + mark.size(); i < text.size(); ++i) {
    if (text.substr(i, mark.size()) == mark) {
      // A text of lines may itself end with one or two quotes.
      size_t end = i + mark.size();
      for (int more = 0; is_of_lines && more < 2 && end < text.size() && text[end] == quote; ++more) ++end;
      return end;
    }
    if (!is_of_lines && text[i] == '\n') return i;
    if (quote == '"' && text[i] == '\\') ++i;
  }
  return text.size();
}

/// toml++ limits how deep values are nested, but not how deep the tables of a dotted key are, into which it recurses.
void expect_short_keys(std::string_view text, const std::string& file) {
  constexpr int kMostParts = 32;
  int dots = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '"' || text[i] == '\'') {
      i = end_of_string(text, i) - 1;
    } else if (text[i] == '#') {
      i = std::min(text.find('\n', i), text.size()) - 1;
    } else if (text[i] != '.') {
      if (std::string_view("\n=,[]{}").find(text[i]) != std::string_view::npos) dots = 0;
    } else if (++dots == kMostParts) {
      throw InputError(file + ":" + std::to_string(1 + std::ranges::count(text.substr(0, i), '\n')) +
                       ": a key has more than " + std::to_string(kMostParts) + " parts; a.b.c has 3");
    }
  }
}

}  // namespace

std::string TomlPlace::where() const { return place(file_, node_->source()); }

void TomlPlace::refuse(const std::string& what) const {
  throw InputError(one_line(where() + ": " + (name_.empty() ? "" : name_ + ": ") + what));
}

void TomlPlace::fail(const std::string& expected) const { refuse("expected " + expected + ", not " + shown(*node_)); }

const toml::table& TomlPlace::table() const {
  if (!node_->is_table()) fail("a table");
  return *node_->as_table();
}

std::optional<TomlPlace> TomlPlace::find(std::string_view key) const {
  const toml::node* node = table().get(key);
  if (node == nullptr) return {};
  return at(*node, std::string(key));
}

TomlPlace TomlPlace::operator[](std::string_view key) const {
  if (auto value = find(key)) return *value;
  refuse("the key '" + std::string(key) + "' is missing");
}

void TomlPlace::expect_only(const std::vector<std::string>& keys) const {
  for (const auto& [key, value] : table())
    if (std::ranges::find(keys, key.str()) == keys.end())
      at(value, name_).refuse("no key '" + std::string(key.str()) + "' is known; " + accepted(keys, key.str()));
}

void TomlPlace::expect_schema(const std::string& name) const {
  if (const TomlPlace schema = (*this)["schema"]; schema.text() != name) schema.fail('"' + name + '"');
}

std::vector<std::pair<std::string, TomlPlace>> TomlPlace::members() const {
  std::vector<std::pair<std::string, TomlPlace>> all;
  for (const auto& [key, value] : table()) all.emplace_back(key.str(), at(value, std::string(key.str())));
  return all;
}

std::vector<TomlPlace> TomlPlace::items(const std::string& expected) const {
  if (!node_->is_array() || node_->as_array()->empty()) fail(expected);
  std::vector<TomlPlace> places;
  for (const toml::node& node : *node_->as_array()) places.push_back(at(node, name_));
  return places;
}

std::string TomlPlace::text() const {
  const auto* value = node_->as_string();
  if (value == nullptr || value->get().empty()) fail("a string that is not empty");
  if (value->get().find('\0') != std::string::npos) refuse("has a NUL byte");
  return value->get();
}

bool TomlPlace::boolean() const {
  if (!node_->is_boolean()) fail("true or false");
  return node_->as_boolean()->get();
}

int TomlPlace::small(int least, int most) const {
  const auto* value = node_->as_integer();
  if (value == nullptr || value->get() < least || value->get() > most)
    fail("a whole number from " + std::to_string(least) + " to " + std::to_string(most));
  return static_cast<int>(value->get());
}

double TomlPlace::not_negative() const {
  const std::optional<double> value = node_->is_number() ? node_->value<double>() : std::nullopt;
  if (!value || !(*value >= 0) || !std::isfinite(*value)) fail("a number of at least 0");
  return *value;
}

size_t TomlPlace::one_of(const std::vector<std::string>& words) const {
  const std::string word = text();
  const auto found = std::ranges::find(words, word);
  if (found == words.end()) refuse("'" + word + "' is unknown; " + accepted(words, word));
  return static_cast<size_t>(found - words.begin());
}

toml::table parse_toml(const std::string& text, const std::string& file) try {
  expect_short_keys(text, file);
  return toml::parse(text, file);
} catch (const toml::parse_error& error) {
  throw InputError(one_line(place(file, error.source()) + ": not TOML: " + std::string(error.description())));
}

}  // namespace plumbline::conformance
