#include "conformance/protocol/command/backend_file.h"

#include <algorithm>
#include <cctype>
#include <cmath>

#include "conformance/protocol/toml.h"
#include "runtime/error.h"
#include "runtime/io/tensor_file.h"
#include "runtime/text/join.h"
#include "runtime/text/shell_words.h"

namespace plumbline::conformance {
namespace {

constexpr const char* kBackendSchema = "plumbline-backend/1";
constexpr double kLongest = 1e6;  // seconds
const std::vector<std::string> kKeys = {"schema", "name",  "argv",    "launcher",    "launcher_verbs",
                                        "folder", "ranks", "waivers", "environment", "timeouts"};
const std::vector<std::string> kTimeouts = {"start", "case", "silence"};
const std::vector<std::string> kVerbs = {"describe", "plan", "run"};
const std::vector<std::string> kPlaces = {"{verb}", "{job}", "{out}", "{np}"};

bool has(const std::vector<std::string>& words, std::string_view word) {
  return std::ranges::find(words, word) != words.end();
}

/// The error about an unknown placeholder `{name}` in `word`; empty without one. `${name}` is for a shell, and braces
/// around anything but a name are for the program.
std::string unknown_place(const std::string& word) {
  constexpr auto is_of_a_name = [](unsigned char c) { return std::isalnum(c) || c == '_' || c == '-'; };
  for (size_t open = word.find('{'); open != std::string::npos; open = word.find('{', open + 1)) {
    const auto close = std::find_if_not(word.begin() + static_cast<std::ptrdiff_t>(open) + 1, word.end(), is_of_a_name);
    const std::string place = word.substr(open, static_cast<size_t>(close - word.begin()) - open) + "}";
    const bool is_place = close != word.end() && *close == '}' && place != "{}";
    if (is_place && (open == 0 || word[open - 1] != '$') && !has(kPlaces, place))
      return "'" + place + "' is unknown; expected one of " + join(kPlaces);
  }
  return {};
}

/// Reads a file; every error names the line.
class Reader {
 public:
  Reader(const toml::table& root, std::string file) : root_(root), file_(std::move(file)) {}

  [[noreturn]] void refuse(const toml::node& at, const std::string& what) const { TomlPlace(file_, at).refuse(what); }
  void expect_keys(const toml::table& table, const std::vector<std::string>& keys) const {
    for (const auto& [key, value] : table)
      if (!has(keys, key.str()))
        refuse(value, "'" + std::string(key.str()) + "' is unknown; expected one of " + join(keys));
  }
  std::string text(const toml::node& node, const std::string& what) const {
    const auto* value = node.as_string();
    if (value == nullptr || value->get().empty()) refuse(node, what + " must be a string that is not empty");
    if (value->get().find('\0') != std::string::npos) refuse(node, what + " has a NUL byte");
    return value->get();
  }
  std::string text(const char* key, const std::string& otherwise) const {
    const toml::node* node = root_.get(key);
    return node == nullptr ? otherwise : text(*node, key);
  }
  std::vector<std::string> words(const char* key) const {
    std::vector<std::string> words;
    const toml::node* node = root_.get(key);
    if (node == nullptr) return words;
    const std::string what = std::string(key) + " must be a list of strings, such as [\"python3\", \"adapter.py\"]";
    if (!node->is_array() || node->as_array()->empty()) refuse(*node, what);
    for (const toml::node& item : *node->as_array()) {
      if (!item.is_string()) refuse(item, what);
      if (item.as_string()->get().find('\0') != std::string::npos) refuse(item, what + "; a word has a NUL byte");
      words.push_back(item.as_string()->get());
    }
    if (words.front().empty()) refuse(*node, std::string(key) + " begins with an empty word");
    return words;
  }
  /// Words of a command line.
  std::vector<std::string> command(const char* key) const {
    std::vector<std::string> all = words(key);
    for (size_t i = 0; i < all.size(); ++i)
      if (const std::string unknown = unknown_place(all[i]); !unknown.empty())
        refuse(*root_.get(key)->as_array()->get(i), std::string(key) + ": " + unknown);
    return all;
  }
  const toml::table* table(const char* key) const {
    const toml::node* node = root_.get(key);
    if (node != nullptr && !node->is_table()) refuse(*node, std::string(key) + " must be a table: [" + key + "]");
    return node == nullptr ? nullptr : node->as_table();
  }
  std::vector<int> ranks() const {
    std::vector<int> numbers;
    const toml::node* node = root_.get("ranks");
    if (node == nullptr) return numbers;
    const char* what = "ranks must be a list of whole numbers from 1 to 4096, such as [1, 2, 4]";
    if (!node->is_array() || node->as_array()->empty()) refuse(*node, what);
    for (const toml::node& item : *node->as_array()) {
      const auto* number = item.as_integer();
      if (number == nullptr || number->get() < 1 || number->get() > 4096) refuse(item, what);
      numbers.push_back(static_cast<int>(number->get()));
    }
    std::ranges::sort(numbers);
    return numbers;
  }
  const toml::table& root() const { return root_; }

 private:
  const toml::table& root_;
  std::string file_;
};

/// "adapter.py" of "tools/adapter.py".
std::string name_of_program(const std::string& program) {
  const std::string name = std::filesystem::path(program).filename().string();
  return name.empty() ? program : name;
}

std::chrono::milliseconds seconds(double value) {
  // At most 31 years, as transport::from_seconds(): nanoseconds can be counted.
  return std::chrono::milliseconds(static_cast<int64_t>(std::ceil(1000 * std::min(value, 1e9))));
}

/// Replaces the placeholders in `word`. Returns whether all of them have a value for this verb.
bool fill(std::string& word, const std::map<std::string, std::string>& values, std::set<std::string>& used) {
  bool complete = true;
  for (const auto& [name, value] : values) {
    for (size_t at = word.find(name); at != std::string::npos; at = word.find(name, at + value.size())) {
      word.replace(at, name.size(), value);
      used.insert(name);
      complete = complete && !value.empty();
    }
  }
  return complete;
}

}  // namespace

BackendSpec runtime_backend(const std::string& program, double timeout_seconds) {
  BackendSpec spec;
  spec.name = "plumbline runtime";
  spec.given = kRuntime;
  spec.foreign = false;
  spec.argv = {program, "backend"};
  spec.launcher = {"mpirun", "-n", "{np}"};
  // Ranks print nothing while they start and during a case. These deadlines are for ranks that hang outside of a wait
  // for a message.
  spec.start = spec.silence = seconds(60 + 2 * timeout_seconds);
  spec.one_case = std::chrono::milliseconds(0);
  return spec;
}

BackendSpec parse_backend_file(const std::string& text, const std::filesystem::path& path) {
  const toml::table root = parse_toml(text, path.string());
  const Reader read(root, path.string());
  read.expect_keys(root, kKeys);
  const std::string expected = std::string("expected schema = \"") + kBackendSchema + "\"";
  if (!root.contains("schema")) throw InputError(path.string() + ":1: no schema; " + expected);
  if (read.text("schema", "") != kBackendSchema) read.refuse(*root.get("schema"), "another schema; " + expected);
  BackendSpec spec;
  spec.given = path.string();
  spec.argv = read.command("argv");
  if (spec.argv.empty())
    throw InputError(path.string() + ":1: no argv; expected a command, such as argv = [\"python3\", \"adapter.py\"]");
  spec.name = read.text("name", name_of_program(spec.argv.front()));
  spec.launcher = read.command("launcher");
  if (root.contains("launcher_verbs")) {
    const std::vector<std::string> verbs = read.words("launcher_verbs");
    for (const std::string& verb : verbs)
      if (!has(kVerbs, verb))
        read.refuse(*root.get("launcher_verbs"), "no verb '" + verb + "'; expected one of " + join(kVerbs));
    spec.launcher_verbs = {verbs.begin(), verbs.end()};
  }
  const std::filesystem::path here = std::filesystem::absolute(path).parent_path();
  spec.folder = here / read.text("folder", "");
  if (root.contains("waivers")) spec.waivers = (here / read.text("waivers", "")).lexically_normal();
  spec.ranks = read.ranks();
  if (const toml::table* variables = read.table("environment")) {
    for (const auto& [key, value] : *variables) {
      if (key.str().empty() || key.str().find_first_of(std::string_view("=\0", 2)) != std::string_view::npos)
        read.refuse(value, "the name of a variable must not be empty, nor have '=' or a NUL byte");
      if (!value.is_string() || value.as_string()->get().find('\0') != std::string::npos)
        read.refuse(value, std::string(key.str()) + " must be a string without NUL bytes");
      spec.environment.emplace(std::string(key.str()), value.as_string()->get());
    }
  }
  if (const toml::table* limits = read.table("timeouts")) {
    read.expect_keys(*limits, kTimeouts);
    for (const auto& [key, value] : *limits) {
      const std::optional<double> number = value.value<double>();
      if (!value.is_number() || !number || !(*number > 0) || *number > kLongest)
        read.refuse(value, std::string(key.str()) + " must be a number of seconds above 0, at most 1000000");
      (key == "start" ? spec.start : key == "case" ? spec.one_case : spec.silence) = seconds(*number);
    }
  }
  return spec;
}

BackendSpec read_backend(const std::string& given) {
  // A command may end in .toml too ("adapter --config x.toml"), so a name with spaces is a file only if it exists.
  if (given.ends_with(".toml") && (given.find_first_of(" \t") == std::string::npos || std::filesystem::exists(given)))
    return parse_backend_file(read_file(given), given);
  BackendSpec spec;
  spec.given = given;
  spec.argv = shell_words(given, "--backend");
  if (spec.argv.empty() || spec.argv.front().empty())
    throw InputError("--backend: nothing given; expected runtime, a FILE.toml or a command in quotes");
  for (const std::string& word : spec.argv)
    if (const std::string unknown = unknown_place(word); !unknown.empty()) throw InputError("--backend: " + unknown);
  spec.name = name_of_program(spec.argv.front());
  return spec;
}

BackendSpec find_backend(const std::string& given, const std::string& program, double timeout_seconds) {
  return given == kRuntime ? runtime_backend(program, timeout_seconds) : read_backend(given);
}

std::vector<std::string> words_for(const BackendSpec& spec, TransportKind transport, const std::string& verb, int ranks,
                                   const std::string& job, const std::string& out) {
  const std::map<std::string, std::string> values = {
      {"{verb}", verb}, {"{job}", job}, {"{out}", out}, {"{np}", std::to_string(ranks)}};
  std::set<std::string> used;
  std::vector<std::string> words;
  if (transport != TransportKind::Threads && spec.launcher_verbs.contains(verb))
    for (std::string word : spec.launcher)
      if (fill(word, values, used)) words.push_back(std::move(word));
  used.clear();
  for (std::string word : spec.argv)
    if (fill(word, values, used)) words.push_back(std::move(word));
  if (!used.contains("{verb}")) words.push_back(verb);
  if (!job.empty() && !used.contains("{job}")) words.insert(words.end(), {"--job", job});
  if (!out.empty() && !used.contains("{out}")) words.insert(words.end(), {"--out", out});
  if (verb == "run" && !spec.foreign) {
    words.insert(words.end(), {"--transport", transport_name(transport)});
    words.insert(words.end(), spec.run_words.begin(), spec.run_words.end());
  }
  return words;
}

}  // namespace plumbline::conformance
