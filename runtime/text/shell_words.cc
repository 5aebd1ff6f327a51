#include "runtime/text/shell_words.h"

#include <cstring>
#include <utility>

#include "runtime/error.h"

namespace plumbline {

std::vector<std::string> shell_words(const std::string& line, const std::string& option) {
  std::vector<std::string> words;
  std::string word;
  bool in_word = false;
  char quote = 0;
  for (size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    const bool is_escape = c == '\\' && i + 1 < line.size() &&
                           (quote == 0 || (quote == '"' && std::strchr("$`\"\\", line[i + 1]) != nullptr));
    if (is_escape) {
      word += line[++i], in_word = true;
    } else if (quote != 0) {
      if (c == quote)
        quote = 0;
      else
        word += c;
    } else if (c == '\'' || c == '"') {
      quote = c, in_word = true;
    } else if (c == ' ' || c == '\t' || c == '\n') {
      if (in_word) words.push_back(std::exchange(word, {}));
      in_word = false;
    } else {
      word += c, in_word = true;
    }
  }
  if (quote != 0) throw InputError(option + ": a quote " + std::string(1, quote) + " is not closed in: " + line);
  if (in_word) words.push_back(word);
  return words;
}

}  // namespace plumbline
