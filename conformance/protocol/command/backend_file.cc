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

/// A string, which may be empty.
std::string text_or_empty(const TomlPlace& place) {
  return place.node().value<std::string>() == "" ? "" : place.text();
}

std::vector<TomlPlace> words_of(const TomlPlace& place) {
  return place.items("a list of strings, such as [\"python3\", \"adapter.py\"]");
}

std::vector<std::string> command_of(const TomlPlace& place) {
  std::vector<std::string> words;
  for (const TomlPlace& word : words_of(place)) {
    words.push_back(text_or_empty(word));
    if (const std::string unknown = unknown_place(words.back()); !unknown.empty()) word.refuse(unknown);
  }
  if (words.front().empty()) place.refuse("begins with an empty word");
  return words;
}

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
  const toml::table document = parse_toml(text, path.string());
  const TomlPlace root(path.string(), document);
  root.expect_only(kKeys);
  root.expect_schema(kBackendSchema);
  BackendSpec spec;
  spec.given = path.string();
  spec.argv = command_of(root["argv"]);
  const auto name = root.find("name"), folder = root.find("folder");
  spec.name = name ? name->text() : name_of_program(spec.argv.front());
  if (const auto launcher = root.find("launcher")) spec.launcher = command_of(*launcher);
  if (const auto verbs = root.find("launcher_verbs")) {
    spec.launcher_verbs.clear();
    for (const TomlPlace& verb : words_of(*verbs)) spec.launcher_verbs.insert(kVerbs[verb.one_of(kVerbs)]);
  }
  const std::filesystem::path here = std::filesystem::absolute(path).parent_path();
  spec.folder = here / (folder ? folder->text() : "");
  if (const auto waivers = root.find("waivers")) spec.waivers = (here / waivers->text()).lexically_normal();
  if (const auto ranks = root.find("ranks"))
    for (const TomlPlace& number : ranks->items("a list of whole numbers from 1 to 4096, such as [1, 2, 4]"))
      spec.ranks.push_back(number.small(1, 4096));
  std::ranges::sort(spec.ranks);
  if (const auto variables = root.find("environment"))
    for (const auto& [key, value] : variables->members()) {
      if (key.empty() || key.find_first_of(std::string_view("=\0", 2)) != std::string::npos)
        value.refuse("the name of a variable must not be empty, nor have '=' or a NUL byte");
      spec.environment.emplace(key, text_or_empty(value));
    }
  if (const auto limits = root.find("timeouts")) {
    limits->expect_only(kTimeouts);
    for (const auto& [key, value] : limits->members()) {
      const std::optional<double> number = value.node().value<double>();
      if (!value.node().is_number() || !number || !(*number > 0) || *number > kLongest)
        value.fail("a number of seconds above 0, at most 1000000");
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
