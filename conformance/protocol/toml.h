// toml++ for files that users write, with errors that name the file and line. The assertions of toml++ are off: they
// abort at a malformed key ("[" at the end of a line), although the parser throws a proper error right after them.
#pragma once

#ifndef TOML_ASSERT
#define TOML_ASSERT(expr) static_assert(true)
#endif
#include <toml++/toml.h>

#include <string>

namespace plumbline::conformance {

/// A node with its place in a file. The document must outlive this object.
class TomlPlace {
 public:
  TomlPlace(std::string file, const toml::node& node) : file_(std::move(file)), node_(&node) {}

  const toml::node& node() const { return *node_; }
  /// Another node of the same file.
  TomlPlace at(const toml::node& node) const { return {file_, node}; }

  /// "file.toml:12"
  std::string text() const;
  /// Throws InputError of one line that starts with text().
  [[noreturn]] void refuse(const std::string& what) const;

 private:
  std::string file_;
  const toml::node* node_;
};

/// Parses `text`. `file` names the text in errors. Throws InputError of one line for invalid TOML.
toml::table parse_toml(const std::string& text, const std::string& file);

}  // namespace plumbline::conformance
