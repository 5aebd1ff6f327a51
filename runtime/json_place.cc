#include "runtime/json_place.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "runtime/error.h"
#include "runtime/join.h"

namespace plumbline {
namespace {

using Json = nlohmann::json;

/// What is here, short enough for one line.
std::string excerpt(const Json& json) {
  constexpr size_t most = 60;
  std::string text = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (text.size() > most) text = text.substr(0, most) + "...";
  return text;
}

}  // namespace

Json parse_json(std::string_view text, const std::string& source) {
  // nlohmann alone would let the last of two equal keys win.
  std::vector<std::set<std::string>> keys;
  const auto refuse_duplicates = [&](int, Json::parse_event_t event, Json& parsed) {
    if (event == Json::parse_event_t::object_start) keys.emplace_back();
    if (event == Json::parse_event_t::object_end) keys.pop_back();
    if (event == Json::parse_event_t::key && !keys.back().insert(parsed.get<std::string>()).second)
      throw InputError(source + " names " + parsed.dump() + " twice");
    return true;
  };
  try {
    return Json::parse(text.begin(), text.end(), refuse_duplicates);
  } catch (const Json::exception& error) {
    std::string reason = error.what();
    std::ranges::replace(reason, '\n', ' ');
    throw InputError(source + " is not JSON: " + reason);
  }
}

std::string json_text(const Json& json) {
  try {
    return json.dump();
  } catch (const Json::exception& error) {
    throw InputError(std::string("a name is not UTF-8: ") + error.what());
  }
}

void JsonPlace::fail(const std::string& expected) const { refuse("expected " + expected + ", not " + excerpt(*json_)); }

void JsonPlace::refuse(const std::string& wrong) const {
  throw InputError(source_ + ": " + (path_.empty() ? "" : path_ + ": ") + wrong);
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
  return JsonPlace(*it, source_, path_.empty() ? key : path_ + "." + key);
}

void JsonPlace::expect_only(std::initializer_list<std::string_view> keys) const {
  if (!json_->is_object()) fail("an object with " + join(keys));
  for (const auto& [key, value] : json_->items())
    if (std::ranges::find(keys, key) == keys.end())
      fail("an object with no other members than " + join(keys) + " (here is \"" + key + "\")");
}

std::vector<JsonPlace> JsonPlace::items() const {
  if (!json_->is_array()) fail("a list");
  std::vector<JsonPlace> places;
  places.reserve(json_->size());
  for (size_t i = 0; i < json_->size(); ++i)
    places.push_back(JsonPlace((*json_)[i], source_, path_ + "[" + std::to_string(i) + "]"));
  return places;
}

std::vector<JsonPlace> JsonPlace::items(size_t count) const {
  if (!json_->is_array() || json_->size() != count) fail("a list of " + std::to_string(count));
  return items();
}

std::string JsonPlace::text() const {
  if (!json_->is_string()) fail("a text");
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

std::vector<int64_t> JsonPlace::integers(int64_t least) const {
  std::vector<int64_t> numbers;
  for (const JsonPlace& item : items()) numbers.push_back(item.integer(least));
  return numbers;
}

size_t JsonPlace::one_of(std::initializer_list<std::string_view> words) const {
  const std::string word = text();
  const auto it = std::ranges::find(words, word);
  if (it == words.end()) fail("one of " + join(words));
  return static_cast<size_t>(it - words.begin());
}

}  // namespace plumbline
