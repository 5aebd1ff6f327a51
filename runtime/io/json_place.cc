#include "runtime/io/json_place.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "runtime/error.h"
#include "runtime/text/join.h"
#include "runtime/text/one_line.h"
#include "runtime/text/shortened.h"

namespace plumbline {
namespace {

using Json = nlohmann::json;

/// The path from `document` to `place` within it, such as "stages[1].op"; nothing for the document itself.
std::optional<std::string> path_to(const Json& document, const Json& place) {
  if (&document == &place) return "";
  for (auto it = document.begin(); document.is_structured() && it != document.end(); ++it) {
    std::optional<std::string> rest = path_to(*it, place);
    if (!rest) continue;
    const std::string step = document.is_object() ? it.key() : "[" + std::to_string(it - document.begin()) + "]";
    return step + (rest->empty() || rest->front() == '[' ? "" : ".") + *rest;
  }
  return std::nullopt;
}

/// Builds the document from the parser's events. nlohmann's own builder keeps the last of two equal keys silently.
class Builder : public nlohmann::json_sax<Json> {
 public:
  explicit Builder(const std::string& source) : source_(source) {}

  Json document;

  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(value); }
  bool number_unsigned(number_unsigned_t value) override { return add(value); }
  bool number_float(number_float_t value, const string_t&) override { return add(value); }
  bool string(string_t& value) override { return add(std::move(value)); }
  bool binary(binary_t&) override { return false; }  // JSON text has no binary values
  bool start_object(size_t) override { return open(Json::object()); }
  bool start_array(size_t) override { return open(Json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(string_t& key) override {
    const auto [member, added] = open_.back()->get_ref<Json::object_t&>().emplace(std::move(key), nullptr);
    if (!added) throw InputError(source_ + " names " + excerpt(member->first) + " twice");
    member_ = &member->second;
    return true;
  }
  bool parse_error(size_t, const std::string&, const nlohmann::detail::exception& error) override {
    throw InputError(source_ + " is not JSON: " + json_reason(error));
  }

 private:
  /// Stores a parsed value where it belongs: as the document, under the last member name, or at the end of the open
  /// list.
  Json& put(Json value) {
    if (open_.empty()) return document = std::move(value);
    if (open_.back()->is_object()) return *member_ = std::move(value);
    return open_.back()->get_ref<Json::array_t&>().emplace_back(std::move(value));
  }
  bool add(Json value) {
    put(std::move(value));
    return true;
  }
  bool open(Json empty) {
    if (open_.size() == kDeepest)
      throw InputError(source_ + ": more than " + std::to_string(kDeepest) + " nested lists and objects");
    open_.push_back(&put(std::move(empty)));
    return true;
  }
  bool close() {
    open_.pop_back();
    return true;
  }

  /// Bounds the recursion of code that walks a document.
  static constexpr size_t kDeepest = 200;
  const std::string& source_;
  std::vector<Json*> open_;  ///< pointers stay valid: a list grows only while none of its elements is open
  Json* member_ = nullptr;
};

}  // namespace

Json parse_json(std::string_view text, const std::string& source) {
  // For nlohmann's parser, the text ends there.
  if (text.find('\0') != std::string_view::npos) throw InputError(source + " is not JSON: it has a NUL byte");
  Builder builder(source);
  PLUMBLINE_CHECK(Json::sax_parse(text.begin(), text.end(), &builder), source);
  return std::move(builder.document);
}

std::string json_reason(const std::exception& error) {
  std::string reason = error.what();  // "[json.exception.parse_error.101] parse error at line 1, ..."
  if (const size_t end = reason.find("] "); reason.starts_with("[json.exception.") && end != std::string::npos)
    reason.erase(0, end + 2);
  return one_line(reason);
}

std::string json_text(const Json& json) {
  try {
    return json.dump();
  } catch (const Json::exception& error) {
    throw InputError("a name is not UTF-8: " + json_reason(error));
  }
}

Json real_json(double value) {
  if (std::isnan(value)) return {{"float", "nan"}};
  if (std::isinf(value)) return {{"float", value > 0 ? "inf" : "-inf"}};
  return value;
}

std::string excerpt(const Json& json) {
  constexpr size_t most = 60;
  std::string text = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (text.size() > most) text = std::string(beginning_of(text, most)) + "...";
  return text;
}

void JsonPlace::fail(const std::string& expected) const { refuse("expected " + expected + ", not " + excerpt(*json_)); }

void JsonPlace::refuse(const std::string& wrong) const {
  const std::string path = path_to(*root_->document, *json_).value_or("");
  throw InputError(one_line(root_->source + ": " + (path.empty() ? "" : shortened(path) + ": ") + wrong));
}

bool JsonPlace::is_null() const { return json_->is_null(); }

JsonPlace JsonPlace::operator[](const char* key) const {
  const std::optional<JsonPlace> place = find(key);
  if (!place) fail("an object with \"" + std::string(key) + "\"");
  return *place;
}

std::optional<JsonPlace> JsonPlace::find(const char* key) const {
  if (!json_->is_object()) fail("an object");
  const auto it = json_->find(key);
  if (it == json_->end()) return std::nullopt;
  return JsonPlace(*it, root_);
}

void JsonPlace::expect_only(std::initializer_list<std::string_view> keys) const {
  if (!json_->is_object()) fail("an object with " + join(keys));
  for (const auto& [key, value] : json_->items())
    if (std::ranges::find(keys, key) == keys.end())
      fail("an object with no other members than " + join(keys) + " (here is " + excerpt(key) + ")");
}

std::vector<std::pair<std::string, JsonPlace>> JsonPlace::members(const char* expected) const {
  if (!json_->is_object()) fail(expected);
  std::vector<std::pair<std::string, JsonPlace>> places;
  for (const auto& [name, value] : json_->get_ref<const Json::object_t&>())
    places.emplace_back(name, JsonPlace(value, root_));
  return places;
}

std::vector<JsonPlace> JsonPlace::items() const {
  if (!json_->is_array()) fail("a list");
  std::vector<JsonPlace> places;
  places.reserve(json_->size());
  for (const Json& item : *json_) places.push_back(JsonPlace(item, root_));
  return places;
}

std::vector<JsonPlace> JsonPlace::items(size_t count) const {
  if (!json_->is_array() || json_->size() != count) fail("a list of " + std::to_string(count));
  return items();
}

std::string JsonPlace::text() const {
  if (!json_->is_string()) fail("a string");
  return json_->get<std::string>();
}

bool JsonPlace::boolean() const {
  if (!json_->is_boolean()) fail("true or false");
  return json_->get<bool>();
}

int64_t JsonPlace::integer(int64_t least, int64_t most) const {
  const bool too_big = json_->is_number_unsigned() &&
                       json_->get<uint64_t>() > static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
  const bool fits = json_->is_number_integer() && !too_big;
  if (!fits || json_->get<int64_t>() < least || json_->get<int64_t>() > most)
    fail("an integer" + (least == std::numeric_limits<int64_t>::min() ? "" : " from " + std::to_string(least)) +
         (most == std::numeric_limits<int64_t>::max() ? "" : " to " + std::to_string(most)));
  return json_->get<int64_t>();
}

double JsonPlace::number() const {
  if (!json_->is_number()) fail("a number");
  return json_->get<double>();
}

double JsonPlace::real() const {
  if (!json_->is_object()) return number();
  expect_only({"float"});
  constexpr double infinity = std::numeric_limits<double>::infinity();
  constexpr std::array values = {infinity, -infinity, std::numeric_limits<double>::quiet_NaN()};
  return values[(*this)["float"].one_of({"inf", "-inf", "nan"})];
}

std::vector<int64_t> JsonPlace::integers(int64_t least) const {
  std::vector<int64_t> numbers;
  for (const JsonPlace& item : items()) numbers.push_back(item.integer(least));
  return numbers;
}

std::vector<std::string> JsonPlace::texts() const {
  const std::vector<JsonPlace> all = items();
  std::vector<std::string> read;
  read.reserve(all.size());
  for (const JsonPlace& item : all) read.push_back(item.text());
  return read;
}

size_t JsonPlace::one_of(std::span<const std::string_view> words) const {
  const std::string word = text();
  const auto it = std::ranges::find(words, word);
  if (it == words.end()) fail("one of " + join(words));
  return static_cast<size_t>(it - words.begin());
}

}  // namespace plumbline
