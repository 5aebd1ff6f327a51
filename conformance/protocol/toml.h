// toml++ for files that users write, with errors that name the file and line. The assertions of toml++ are off: they
// abort at a malformed key ("[" at the end of a line), although the parser throws a proper error right after them.
#pragma once

#ifndef TOML_ASSERT
#define TOML_ASSERT(expr) static_assert(true)
#endif
#include <toml++/toml.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace plumbline::conformance {

/// A value of a file with its place. The document must outlive this object. Every member that reads throws InputError
/// of one line if the value is not what the member reads: "file.toml:12: rows: expected a whole number from 1 to 8, not
/// "two"".
class TomlPlace {
 public:
  /// `name`: what errors call the value, such as its key; empty: nothing.
  TomlPlace(std::string file, const toml::node& node, std::string name = {})
      : file_(std::move(file)), node_(&node), name_(std::move(name)) {}

  const toml::node& node() const { return *node_; }
  /// Another node of the same file.
  TomlPlace at(const toml::node& node, std::string name = {}) const { return {file_, node, std::move(name)}; }

  /// "file.toml:12"
  std::string where() const;
  /// Throws InputError of one line that starts with where() and the name.
  [[noreturn]] void refuse(const std::string& what) const;
  /// refuse("expected `expected`, not VALUE")
  [[noreturn]] void fail(const std::string& expected) const;

  /// The value under a key of this table. operator[] requires it.
  std::optional<TomlPlace> find(std::string_view key) const;
  TomlPlace operator[](std::string_view key) const;
  /// Throws InputError unless this value is a table and all its keys are among `keys`.
  void expect_only(const std::vector<std::string>& keys) const;
  /// The elements of this list, which must not be empty.
  std::vector<TomlPlace> items() const;

  /// A string that is not empty.
  std::string text() const;
  bool boolean() const;
  int small(int least, int most) const;
  /// A number of at least 0.
  double not_negative() const;
  /// The index in `words` of this string. An error lists `words`, or the nearest of many.
  size_t one_of(const std::vector<std::string>& words) const;

 private:
  const toml::table& table() const;

  std::string file_;
  const toml::node* node_;
  std::string name_;
};

/// Parses `text`. `file` names the text in errors. Throws InputError of one line for invalid TOML, and for a key of
/// more than 32 parts.
toml::table parse_toml(const std::string& text, const std::string& file);

}  // namespace plumbline::conformance
