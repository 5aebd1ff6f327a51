// Typed access to a JSON document. A JsonPlace is one value of the document, and its errors name its path.
//
// Errors are InputErrors of one line: "program.json: stages[1].graph.nodes[3].op: expected a string, not 3".
#pragma once

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace plumbline {

/// Parses `text`. Throws InputError, prefixed with `source`, if `text` is not JSON (a NUL byte is not), an object has
/// the same key twice, or more than 200 lists and objects are nested.
nlohmann::json parse_json(std::string_view text, const std::string& source);

/// Returns `json` as text on one line. Throws InputError if a string in `json` is not UTF-8.
std::string json_text(const nlohmann::json& json);

/// Returns `value` as JsonPlace::real() reads it: a number, or {"float": "inf"}, "-inf" or "nan", which JSON lacks.
nlohmann::json real_json(double value);

/// Returns the message of an exception of nlohmann's library, on one line, without its "[json.exception...]".
std::string json_reason(const std::exception& error);

/// Returns the beginning of `json`, at most 60 bytes on one line, for a message.
std::string excerpt(const nlohmann::json& json);

/// One value of a document. The document must outlive the place and must not change. Every member that reads throws
/// InputError with the source and the path if the value has another type or is out of range.
class JsonPlace {
 public:
  /// The whole document; `source` (a file name, for example) is the prefix of every error.
  JsonPlace(const nlohmann::json& document, std::string source)
      : json_(&document), root_(std::make_shared<const Root>(Root{&document, std::move(source)})) {}

  /// Throws InputError "SOURCE: PATH: expected `expected`, not VALUE"; VALUE is this place's value, cut to 60
  /// characters.
  [[noreturn]] void fail(const std::string& expected) const;
  /// Throws InputError "SOURCE: PATH: `wrong`".
  [[noreturn]] void refuse(const std::string& wrong) const;

  const nlohmann::json& json() const { return *json_; }
  bool is_null() const;

  /// Returns a member of this object. Throws InputError if the member is missing.
  JsonPlace operator[](const char* key) const;
  /// Returns a member of this object, or nothing if the member is missing.
  std::optional<JsonPlace> find(const char* key) const;
  /// Throws InputError unless this value is an object and `keys` has the names of all its members.
  void expect_only(std::initializer_list<std::string_view> keys) const;
  /// Returns the names and values of this object's members, sorted by name; `expected` is for the error.
  std::vector<std::pair<std::string, JsonPlace>> members(const char* expected = "an object") const;
  /// Returns the elements of this list.
  std::vector<JsonPlace> items() const;
  /// Returns the elements of this list, which must have `count` elements.
  std::vector<JsonPlace> items(size_t count) const;

  std::string text() const;
  bool boolean() const;
  /// Returns this integer, which must be in [least, most]. 3.0 is not an integer.
  int64_t integer(int64_t least = std::numeric_limits<int64_t>::min(),
                  int64_t most = std::numeric_limits<int64_t>::max()) const;
  /// Returns integer(least, most) as an int.
  int small(int least, int most) const { return static_cast<int>(integer(least, most)); }
  /// Returns this number, which need not be finite: 1e999 is infinite.
  double number() const;
  /// Returns this number, or the one that it stands for in real_json()'s form.
  double real() const;
  /// Returns this list of integers, each at least `least`.
  std::vector<int64_t> integers(int64_t least = std::numeric_limits<int64_t>::min()) const;
  /// Returns this list of strings.
  std::vector<std::string> texts() const;
  /// Returns the index in `words` of this string. Throws InputError listing `words` if they do not contain it.
  size_t one_of(std::span<const std::string_view> words) const;
  size_t one_of(std::initializer_list<std::string_view> words) const {
    return one_of(std::span(words.begin(), words.size()));
  }

 private:
  struct Root {
    const nlohmann::json* document;
    std::string source;
  };
  JsonPlace(const nlohmann::json& json, std::shared_ptr<const Root> root) : json_(&json), root_(std::move(root)) {}

  const nlohmann::json* json_;
  std::shared_ptr<const Root> root_;  ///< searched for json_ only to report an error
};

}  // namespace plumbline
