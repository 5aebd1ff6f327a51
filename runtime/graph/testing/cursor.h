// Cursor: one line of the text form, read from left to right, with errors that name line and column.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/error.h"
#include "runtime/text/number.h"

namespace plumbline::graph {

/// Reading functions skip spaces first, and throw InputError: "graph text, line 3, column 7: expected ...". `number` is
/// the line's number, from 1. The text of `line` must outlive the cursor.
class Cursor {
 public:
  Cursor(std::string_view line, int number) : line_(line), number_(number) {}

  [[noreturn]] void fail(const std::string& expected) const { fail_at(at_, expected); }
  /// As fail(), at the beginning of the last word() or at the last mark().
  [[noreturn]] void fail_word(const std::string& expected) const { fail_at(word_, expected); }
  void mark() {
    skip_space();
    word_ = at_;
  }
  void skip_space() {
    while (at_ < line_.size() && line_[at_] == ' ') ++at_;
  }
  bool done() {
    skip_space();
    return at_ == line_.size();
  }
  /// Whether the rest of the line begins with `text`.
  bool peek(std::string_view text) {
    skip_space();
    return line_.substr(at_).starts_with(text);
  }
  /// Reads `text` if it is next; otherwise returns false.
  bool accept(std::string_view text) {
    if (!peek(text)) return false;
    at_ += text.size();
    return true;
  }
  void expect(std::string_view text) {
    if (!accept(text)) fail("'" + std::string(text) + "'");
  }
  /// Reads the longest run of characters that are not in `stops`; fails if there is none.
  std::string word(std::string_view stops) {
    mark();
    while (at_ < line_.size() && stops.find(line_[at_]) == std::string_view::npos) ++at_;
    if (at_ == word_) fail("a word");
    return std::string(line_.substr(word_, at_ - word_));
  }
  /// Reads a string in double quotes; a backslash escapes the next character, \n is a newline.
  std::string quoted_text() {
    expect("\"");
    std::string out;
    while (at_ < line_.size() && line_[at_] != '"') {
      const bool escaped = line_[at_] == '\\';
      if (escaped) ++at_;
      if (at_ == line_.size()) break;
      out += escaped && line_[at_] == 'n' ? '\n' : line_[at_];
      ++at_;
    }
    expect("\"");
    return out;
  }
  /// Reads an integer; it ends at a space or at one of `,]):*`.
  int64_t integer() {
    const std::string text = word(" ,]):*");
    const std::optional<int64_t> value = parse_number<int64_t>(text);
    if (!value) fail_word("an integer, not '" + text + "'");
    return *value;
  }
  /// Reads "[a, b]": calls `element`, which must read one element, at the beginning of each.
  template <class Element>
  void bracketed(Element&& element) {
    expect("[");
    if (accept("]")) return;
    do element();
    while (accept(","));
    expect("]");
  }

 private:
  [[noreturn]] void fail_at(size_t column, const std::string& expected) const {
    throw InputError("graph text, line " + std::to_string(number_) + ", column " + std::to_string(column + 1) +
                     ": expected " + expected);
  }

  std::string_view line_;
  size_t at_ = 0;
  size_t word_ = 0;
  int number_;
};

}  // namespace plumbline::graph
