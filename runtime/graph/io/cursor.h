// One line of a text form, read from left to right; what is not as expected is told by line and column.
#pragma once

#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/error.h"

namespace plumbline::graph {

/// Whether all of `text` is a number of this type (a double also as inf and nan); out of range is not.
template <class Number>
bool read_whole(const std::string& text, Number& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

/// Its errors are InputErrors: "graph text, line 3, column 7: expected ...". Spaces between what is read do not count.
class Cursor {
 public:
  Cursor(std::string_view line, int number) : line_(line), number_(number) {}

  [[noreturn]] void fail(const std::string& expected) const { fail_at(at_, expected); }
  /// As fail(), at the beginning of the last word, or of what mark() marked.
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
  bool peek(std::string_view text) {
    skip_space();
    return line_.substr(at_).starts_with(text);
  }
  bool accept(std::string_view text) {
    if (!peek(text)) return false;
    at_ += text.size();
    return true;
  }
  void expect(std::string_view text) {
    if (!accept(text)) fail("'" + std::string(text) + "'");
  }
  /// The longest run of characters that are not in `stops`.
  std::string word(std::string_view stops) {
    mark();
    while (at_ < line_.size() && stops.find(line_[at_]) == std::string_view::npos) ++at_;
    if (at_ == word_) fail("a word");
    return std::string(line_.substr(word_, at_ - word_));
  }
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
  int64_t integer() {
    const std::string text = word(" ,]):*");
    int64_t value = 0;
    if (!read_whole(text, value)) fail_word("an integer, not '" + text + "'");
    return value;
  }
  /// Reads "[a, b]" by calling `element` at the beginning of each.
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
