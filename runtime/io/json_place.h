// Reads JSON from a file or message. Each place knows its path in the document, so that an error can name it.
//
// Errors are InputErrors of one line: "program.json: stages[1].graph.nodes[3].op: expected a string, not 3".
#pragma once

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace plumbline {

/// Parses `text`. Throws InputError, prefixed with `source`, when it is not JSON or an object names a key twice.
nlohmann::json parse_json(std::string_view text, const std::string& source);

/// `json` as text on one line. Throws InputError when a name in it is not UTF-8.
std::string json_text(const nlohmann::json& json);

/// A place in a document; the document must outlive it.
class JsonPlace {
 public:
  JsonPlace(const nlohmann::json& document, std::string source)
      : json_(&document), root_(std::make_shared<const Root>(Root{&document, std::move(source)})) {}

  /// Throws "expected X, not Y", where Y is the value here.
  [[noreturn]] void fail(const std::string& expected) const;
  /// Throws that the value here is wrong, and why.
  [[noreturn]] void refuse(const std::string& wrong) const;

  const nlohmann::json& json() const { return *json_; }
  bool is_null() const;

  /// A member of an object; it must exist.
  JsonPlace operator[](const char* key) const;
  std::optional<JsonPlace> find(const char* key) const;
  /// Refuses an object with other members than these, and any value that is not an object.
  void expect_only(std::initializer_list<std::string_view> keys) const;
  /// The elements of a list.
  std::vector<JsonPlace> items() const;
  /// The elements of a list that must have this length.
  std::vector<JsonPlace> items(size_t count) const;

  std::string text() const;
  bool boolean() const;
  int64_t integer(int64_t least = std::numeric_limits<int64_t>::min(),
                  int64_t most = std::numeric_limits<int64_t>::max()) const;
  int small(int least, int most) const { return static_cast<int>(integer(least, most)); }
  std::vector<int64_t> integers(int64_t least = std::numeric_limits<int64_t>::min()) const;
  /// The index in `words` of the string here.
  size_t one_of(std::initializer_list<std::string_view> words) const;

 private:
  struct Root {
    const nlohmann::json* document;
    std::string source;
  };
  JsonPlace(const nlohmann::json& json, std::shared_ptr<const Root> root) : json_(&json), root_(std::move(root)) {}

  const nlohmann::json* json_;
  std::shared_ptr<const Root> root_;  ///< the path to json_ in it is looked up only for an error
};

}  // namespace plumbline
