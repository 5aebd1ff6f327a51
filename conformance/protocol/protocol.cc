#include "conformance/protocol/protocol.h"

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "conformance/protocol/device_kind.h"
#include "runtime/io/json_place.h"
#include "runtime/text/join.h"
#include "runtime/text/one_line.h"
#include "runtime/text/shortened.h"
#include "runtime/transport/adverse_wire.h"

namespace plumbline::conformance {
namespace {

constexpr const char* kLevels[] = {"program", "stage", "model", "own"};
/// The kinds that plumbline_recorder.py records.
constexpr reference::ResultKind kRecorded[] = {reference::ResultKind::Forward, reference::ResultKind::Loss,
                                               reference::ResultKind::Backward, reference::ResultKind::Grad,
                                               reference::ResultKind::Buffer};

std::vector<std::string> kinds() {
  std::vector<std::string> names;
  for (const reference::ResultKind kind : all_result_kinds()) names.emplace_back(reference::kind_name(kind));
  return names;
}

reference::ResultKind kind_of(const JsonPlace& place) {
  const std::vector<std::string> names = kinds();
  const auto found = std::ranges::find(names, place.text());
  if (found == names.end()) place.fail("one of " + join(names));
  return static_cast<reference::ResultKind>(found - names.begin());
}

/// Names that a backend chose, which become file names.
std::vector<std::string> own_names(const JsonPlace& place) {
  std::set<std::string> known;
  for (const JsonPlace& item : place.items()) {
    const std::string name = item.text();
    const bool plain = std::ranges::all_of(
        name, [](unsigned char c) { return std::isalnum(c) || c == '.' || c == '_' || c == '-' || c == '+'; });
    if (name.empty() || name.front() == '.' || !plain)
      item.fail("a name of letters, digits and . _ - + that does not begin with a period");
    if (name == kOneRank) item.refuse(std::string("\"") + kOneRank + "\" is reserved for the run on one rank");
    if (!known.insert(name).second) item.refuse("\"" + name + "\" appears twice");
  }
  if (known.empty()) place.fail("a list of at least one name");
  return place.texts();
}

/// Reads the members that only a backend with custom models has, and refuses those that it cannot have.
void read_own(const JsonPlace& json, BackendDescription& description) {
  description.models = own_names(json["models"]);
  if (json["schedules"].json().is_string()) json["schedules"].fail("the names of its schedules, with level \"own\"");
  description.schedules = own_names(json["schedules"]);
  std::vector<std::string> names;
  for (const reference::ResultKind kind : kRecorded) names.emplace_back(reference::kind_name(kind));
  for (const JsonPlace& item : json["delivers"].items())
    if (std::ranges::find(kRecorded, kind_of(item)) == std::end(kRecorded))
      item.fail("one of " + join(names) + " with level \"own\"");
}

std::string wire_word(const JsonPlace& place) {
  const std::string word = place.text();
  const std::vector<std::string>& known = transport::wire_words();
  if (std::ranges::find(known, word) == known.end()) place.fail("one of " + join(known));
  return word;
}

constexpr const char* kBlanks = " \t\r\n";

std::string_view trimmed(std::string_view text) {
  text.remove_prefix(std::min(text.size(), text.find_first_not_of(kBlanks)));
  return text.substr(0, text.find_last_not_of(kBlanks) + 1);
}

/// The first words of `text` in quotes.
std::string first_words(std::string_view text) {
  text = trimmed(text);
  const std::string_view kept = beginning_of(text, 60);
  return "\"" + one_line(kept) + (kept.size() < text.size() ? "..." : "") + "\"";
}

/// The position of a JSON value at the end of `text`: on its own line, or after other text on a line. npos without one.
size_t json_at_the_end_of(std::string_view text, char bracket) {
  const bool begins_lines = text.front() == bracket;  // else a part of malformed JSON could be found
  for (size_t line = 0; line < text.size(); line = std::min(text.size(), text.find('\n', line)) + 1) {
    const size_t at = begins_lines ? line : text.find(bracket, line);
    if (at >= text.size()) break;
    if (text[at] == bracket && nlohmann::json::accept(text.substr(at))) return at;
  }
  return std::string_view::npos;
}

}  // namespace

std::string stray_words(std::string_view printed, char bracket) {
  const std::string expected = std::string("; expected one JSON ") + (bracket == '{' ? "object" : "list") +
                               " and nothing else; other output belongs on standard error";
  const std::string_view text = trimmed(printed);
  if (text.empty()) return "nothing on standard output" + expected;
  if (nlohmann::json::accept(text)) return {};
  if (const size_t at = json_at_the_end_of(text, bracket); at != std::string_view::npos)
    return first_words(text.substr(0, at)) + " on standard output before the JSON" + expected;
  if (text.front() != bracket) return first_words(text) + " on standard output is not JSON" + expected;
  std::istringstream in{std::string(text)};
  try {
    nlohmann::json first;
    in >> first;
  } catch (const nlohmann::json::exception&) {
    return {};
  }
  return first_words(text.substr(static_cast<size_t>(in.tellg()))) + " on standard output after the JSON" + expected;
}

std::vector<reference::ResultKind> all_result_kinds() {
  std::vector<reference::ResultKind> kinds;
  for (int kind = 0; kind < reference::kResultKinds; ++kind) kinds.push_back(static_cast<reference::ResultKind>(kind));
  return kinds;
}

BackendDescription parse_description(std::string_view text, const std::string& source) {
  const nlohmann::json document = parse_json(text, source);
  const JsonPlace json(document, source);
  if (const int version = json["protocol"].small(1, 1'000'000); version != kProtocolVersion)
    json["protocol"].refuse("protocol " + std::to_string(version) + "; this plumbline supports " +
                            std::to_string(kProtocolVersion));
  json.expect_only({"protocol", "name", "version", "features", "schedules", "delivers", "level", "models", "order",
                    "libtorch", "device", "wire"});
  BackendDescription description;
  description.name = shortened(json["name"].text());
  description.version = shortened(json["version"].text());
  if (const auto features = json.find("features")) description.features = features->texts();
  if (const JsonPlace schedules = json["schedules"]; schedules.json().is_string())
    schedules.one_of({"any"});
  else
    description.schedules = schedules.texts();
  for (const JsonPlace& item : json["delivers"].items()) {
    const reference::ResultKind kind = kind_of(item);
    if (std::ranges::find(description.delivers, kind) != description.delivers.end())
      item.refuse("\"" + item.text() + "\" appears twice");
    description.delivers.push_back(kind);
  }
  if (description.delivers.empty()) json["delivers"].fail("at least one of " + join(kinds()));
  description.level = static_cast<CaseLevel>(json["level"].one_of({kLevels[0], kLevels[1], kLevels[2], kLevels[3]}));
  if (description.level == CaseLevel::Own)
    read_own(json, description);
  else if (const auto models = json.find("models"))
    models->refuse("only a backend of level \"own\" has models");
  if (const auto order = json.find("order")) description.follows_order = order->one_of({"given", "own"}) == 0;
  if (const auto libtorch = json.find("libtorch")) description.libtorch = libtorch->text();
  if (const auto device = json.find("device")) description.device = kDeviceWords.at(device->one_of(kDeviceWords));
  if (const auto wire = json.find("wire"))
    for (const JsonPlace& word : wire->items()) description.wire.push_back(wire_word(word));
  return description;
}

std::string description_text(const BackendDescription& description) {
  nlohmann::ordered_json json = {{"protocol", kProtocolVersion},
                                 {"name", description.name},
                                 {"version", description.version},
                                 {"features", description.features}};
  if (description.schedules)
    json["schedules"] = *description.schedules;
  else
    json["schedules"] = "any";
  json["delivers"] = nlohmann::ordered_json::array();
  for (const reference::ResultKind kind : description.delivers) json["delivers"].push_back(reference::kind_name(kind));
  json["level"] = kLevels[static_cast<int>(description.level)];
  if (!description.models.empty()) json["models"] = description.models;
  json["order"] = description.follows_order ? "given" : "own";
  if (!description.libtorch.empty()) json["libtorch"] = description.libtorch;
  if (description.device != BackendDescription().device) json["device"] = description.device;
  if (!description.wire.empty()) json["wire"] = description.wire;
  return json.dump(2);
}

std::vector<std::optional<PlanAnswer>> parse_plan(std::string_view text, const Job& job, const std::string& source) {
  const nlohmann::json document = parse_json(text, source);
  std::vector<std::optional<PlanAnswer>> answers(job.cases.size());
  for (const JsonPlace& item : JsonPlace(document, source).items()) {
    item.expect_only({"id", "schedule", "supported", "why"});
    const std::string id = item["id"].text(), schedule = item["schedule"].text();
    const auto asked =
        std::ranges::find_if(job.cases, [&](const JobCase& one) { return one.id == id && one.schedule == schedule; });
    if (asked == job.cases.end()) item.refuse("the job has no case " + id + " x " + schedule);
    std::optional<PlanAnswer>& answer = answers[static_cast<size_t>(asked - job.cases.begin())];
    if (answer) item.refuse("a second answer for " + id + " x " + schedule);
    answer = {item["supported"].boolean(), ""};
    if (const auto why = item.find("why")) answer->why = shortened(why->text());
    if (!answer->supported && answer->why.empty())
      item.fail("an object with a \"why\": the reason why it is not supported");
  }
  return answers;
}

std::string plan_text(const Job& job, const std::vector<std::optional<PlanAnswer>>& answers) {
  nlohmann::json json = nlohmann::json::array();
  for (size_t i = 0; i < answers.size(); ++i) {
    if (!answers[i]) continue;
    json.push_back(
        {{"id", job.cases[i].id}, {"schedule", job.cases[i].schedule}, {"supported", answers[i]->supported}});
    if (!answers[i]->supported) json.back()["why"] = answers[i]->why;
  }
  return json.dump(1);
}

}  // namespace plumbline::conformance
