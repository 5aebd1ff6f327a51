#include <unistd.h>

#include <algorithm>
#include <string_view>

#include "conformance/cli/commands.h"
#include "conformance/protocol/process/process.h"
#include "runtime/error.h"

namespace plumbline::cli {
namespace {

std::string& stored_command_line() {
  static std::string line;
  return line;
}
std::string& stored_program() {
  static std::string name;
  return name;
}
std::vector<std::string>& stored_arguments() {
  static std::vector<std::string> words;
  return words;
}

}  // namespace

/// `plumbline help X` is `plumbline X --help`.
std::vector<char*> with_help_last(int argc, char** argv) {
  static std::string option = "--help";
  std::vector<char*> words(argv, argv + argc);
  if (argc > 1 && std::string_view(argv[1]) == "help") {
    words.erase(words.begin() + 1);
    words.push_back(option.data());
  }
  return words;
}

void remember_command_line(int argc, char** argv) {
  for (int i = 0; i < argc; ++i) stored_command_line() += (i ? " " : "") + conformance::shell_word(argv[i]);
  stored_program() = argv[0];
  stored_arguments().assign(argv + 1, argv + argc);
}

std::string first_sentence(std::string text) {
  for (size_t end = text.find_first_of(".:"); end != std::string::npos; end = text.find_first_of(".:", end + 1))
    if (end + 1 == text.size() || text[end + 1] == ' ' || text[end + 1] == '\n') text.resize(end);
  std::ranges::replace(text, '\n', ' ');
  return text;
}

const std::string& command_line() { return stored_command_line(); }
const std::string& program() { return stored_program(); }
const std::vector<std::string>& arguments() { return stored_arguments(); }

void execute_beside(const std::string& name, std::vector<std::string> words, const std::string& what_makes_it) {
  const std::string file = std::filesystem::path(own_path()).parent_path() / name;
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  execv(file.c_str(), argv.data());
  throw InputError("there is no " + file + "; " + what_makes_it);
}

}  // namespace plumbline::cli
