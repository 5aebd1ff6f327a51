#include "conformance/judge/verdict/waivers.h"

#include <fnmatch.h>

#include <algorithm>
#include <cstdio>
#include <span>

#include "conformance/protocol/device_kind.h"
#include "conformance/protocol/toml.h"
#include "conformance/protocol/transport_kind.h"
#include "runtime/error.h"
#include "runtime/io/tensor_file.h"
#include "runtime/text/join.h"
#include "runtime/text/number.h"
#include "runtime/text/one_line.h"

namespace plumbline::conformance {
namespace {

constexpr const char* kWaiversSchema = "plumbline-waivers/1";
constexpr Status kWaivable[] = {Status::Fail, Status::Error, Status::Timeout, Status::Mistrusted};

bool matches(const std::string& glob, const std::string& text) { return fnmatch(glob.c_str(), text.c_str(), 0) == 0; }

bool matches_one(const std::vector<std::string>& globs, const std::string& text) {
  return std::any_of(globs.begin(), globs.end(), [&](const std::string& glob) { return matches(glob, text); });
}

/// Removes the dotted numbers from the beginning of `text`.
std::vector<int64_t> take_version(std::string_view& text) {
  std::vector<int64_t> numbers;
  while (true) {
    const std::optional<int64_t> number = take_number<int64_t>(text);
    if (!number || *number < 0) return {};
    numbers.push_back(*number);
    if (text.size() < 2 || text[0] != '.' || text[1] < '0' || text[1] > '9') return numbers;
    text.remove_prefix(1);
  }
}

/// -1, 0 or 1. A missing number is 0: 2.15 equals 2.15.0.
int compare_versions(const std::vector<int64_t>& a, const std::vector<int64_t>& b) {
  for (size_t i = 0; i < std::max(a.size(), b.size()); ++i) {
    const int64_t left = i < a.size() ? a[i] : 0, right = i < b.size() ? b[i] : 0;
    if (left != right) return left < right ? -1 : 1;
  }
  return 0;
}

const toml::table& table_of(const TomlPlace& place, const std::string& what) {
  if (!place.node().is_table()) place.refuse(what + " must be a table");
  return *place.node().as_table();
}

std::string text_of(const TomlPlace& place, const std::string& what, const std::string& accepted) {
  const auto* value = place.node().as_string();
  if (value == nullptr || value->get().empty()) place.refuse(what + " must be a string that is not empty: " + accepted);
  return value->get();
}

void expect_keys(const TomlPlace& place, const toml::table& table, const std::string& what,
                 const std::vector<std::string>& known) {
  for (const auto& [key, node] : table)
    if (std::find(known.begin(), known.end(), key.str()) == known.end())
      place.at(node).refuse(what + " has no key '" + std::string(key.str()) + "'; expected one of " + join(known));
}

/// The node under a required key.
TomlPlace required(const TomlPlace& place, const toml::table& table, const char* key, const std::string& accepted) {
  const toml::node* node = table.get(key);
  if (node == nullptr) place.refuse("a waiver needs '" + std::string(key) + "': " + accepted);
  return place.at(*node);
}

std::string word(const TomlPlace& place, const std::string& what, std::span<const std::string_view> words) {
  const std::vector<std::string> accepted(words.begin(), words.end());
  const std::string text = text_of(place, what, join(accepted));
  if (std::find(accepted.begin(), accepted.end(), text) == accepted.end())
    place.refuse(what + " '" + text + "': expected one of " + join(accepted));
  return text;
}

VersionRange range_of(const TomlPlace& place, const std::string& what, const std::string& text) {
  const std::string accepted =
      " is not a condition; expected one such as 4, \"4\", \">=4\", \">=2.11, <2.15\", or a list of them";
  VersionRange range;
  std::string_view rest = text;
  while (true) {
    VersionRange::Clause clause{"==", {}};
    while (rest.starts_with(' ')) rest.remove_prefix(1);
    for (const std::string_view comparison : {"==", "!=", "<=", ">=", "<", ">"})
      if (rest.starts_with(comparison)) {
        clause.comparison = comparison;
        rest.remove_prefix(comparison.size());
        break;
      }
    while (rest.starts_with(' ')) rest.remove_prefix(1);
    clause.version = take_version(rest);
    if (clause.version.empty()) place.refuse(what + " '" + text + "'" + accepted);
    range.clauses.push_back(std::move(clause));
    while (rest.starts_with(' ')) rest.remove_prefix(1);
    if (rest.empty()) return range;
    if (!rest.starts_with(',')) place.refuse(what + " '" + text + "'" + accepted);
    rest.remove_prefix(1);
  }
}

/// A number, a string, or a list of them.
std::vector<VersionRange> ranges_of(const TomlPlace& place, const std::string& what) {
  if (const auto* number = place.node().as_integer()) return {range_of(place, what, std::to_string(number->get()))};
  if (const auto* list = place.node().as_array(); list != nullptr && !list->empty()) {
    std::vector<VersionRange> ranges;
    for (const toml::node& node : *list) {
      if (node.is_array()) place.refuse(what + " must be a list of numbers or strings");
      for (VersionRange& range : ranges_of(place.at(node), what)) ranges.push_back(std::move(range));
    }
    return ranges;
  }
  return {range_of(place, what, text_of(place, what, "4, \">=4\", or a list of them"))};
}

/// A pattern or a list of patterns, each with its place in the file.
std::vector<std::pair<std::string, TomlPlace>> patterns_of(const TomlPlace& place, const std::string& what,
                                                           const std::string& accepted) {
  const auto* list = place.node().as_array();
  if (list == nullptr) return {{text_of(place, what, accepted + ", or a list of them"), place}};
  if (list->empty()) place.refuse(what + " is an empty list: expected " + accepted + ", or several");
  std::vector<std::pair<std::string, TomlPlace>> patterns;
  for (const toml::node& node : *list) patterns.emplace_back(text_of(place.at(node), what, accepted), place.at(node));
  return patterns;
}

void read_condition(const TomlPlace& place, Waiver& waiver) {
  const toml::table& table = table_of(place, "'when'");
  expect_keys(place, table, "'when'", {"ranks", "transport", "dtype", "device", "backend", "version"});
  for (const auto& [key, node] : table) {
    const TomlPlace here = place.at(node);
    if (key == "ranks") waiver.ranks = ranges_of(here, "'ranks'");
    if (key == "version") waiver.version = ranges_of(here, "'version'");
    if (key == "transport") waiver.transport = word(here, "'transport'", kTransportOptions);
    if (key == "dtype") waiver.dtype = word(here, "'dtype'", reference::kDtypeWords);
    if (key == "device") waiver.device = word(here, "'device'", kDeviceWords);
    if (key == "backend") waiver.backend_glob = text_of(here, "'backend'", "a pattern for the name of a backend");
  }
}

Status expectation_of(const TomlPlace& place) {
  std::vector<std::string> names;
  for (const Status status : kWaivable) names.emplace_back(status_name(status));
  const std::string accepted = join(names) + " (a case that was not run, or was refused, needs no waiver)";
  const std::string text = text_of(place, "'expect'", accepted);
  if (std::find(names.begin(), names.end(), text) == names.end())
    place.refuse("'expect' is '" + text + "': expected one of " + accepted);
  return *status_of(text);
}

std::chrono::year_month_day date_of(const TomlPlace& place) {
  const auto* date = place.node().as_date();
  if (date == nullptr)
    place.refuse("'expires' must be a date without quotes, the last day on which it holds: 2027-03-01");
  const auto& [year, month, day] = date->get();
  return std::chrono::year(year) / month / day;
}

std::string link_of(const TomlPlace& place) {
  const std::string accepted = "an address where the deviation is discussed, https://... or a file's path";
  const std::string link = text_of(place, "'link'", accepted);
  if (link.find_first_of(" \t\n") != std::string::npos || link.find_first_of("/.") == std::string::npos)
    place.refuse("'link' is '" + link + "': expected " + accepted);
  return link;
}

Waiver waiver_of(const TomlPlace& place, const std::vector<std::string>& case_ids) {
  const toml::table& table = table_of(place, "'waiver'");
  expect_keys(place, table, "a waiver",
              {"case", "schedule", "when", "expect", "race", "says", "link", "reason", "expires"});
  Waiver waiver;
  waiver.where = place.where();
  const std::string ids = "a pattern for ids of cases", names = "a pattern for names of schedules";
  for (const auto& [glob, here] : patterns_of(required(place, table, "case", ids), "'case'", ids)) {
    if (std::none_of(case_ids.begin(), case_ids.end(), [&](const std::string& id) { return matches(glob, id); }))
      here.refuse("no case of the corpus matches '" + glob + "'; `plumbline list` names them");
    waiver.case_globs.push_back(glob);
  }
  if (const toml::node* node = table.get("schedule")) {
    waiver.schedule_globs.clear();
    for (const auto& [glob, here] : patterns_of(place.at(*node), "'schedule'", names))
      waiver.schedule_globs.push_back(glob);
  }
  if (const toml::node* node = table.get("when")) read_condition(place.at(*node), waiver);
  waiver.expect = expectation_of(required(place, table, "expect", "fail, error, timeout or mistrusted"));
  if (const toml::node* node = table.get("race")) {
    if (!node->is_boolean()) place.at(*node).refuse("'race' must be true or false");
    waiver.is_race = *node->value<bool>();
  }
  if (const toml::node* node = table.get("says")) {
    waiver.says_globs.clear();
    for (const auto& [glob, here] : patterns_of(place.at(*node), "'says'", "a pattern for the sentence of a verdict"))
      waiver.says_globs.push_back(glob);
  }
  waiver.link = link_of(required(place, table, "link", "an address where the deviation is discussed"));
  waiver.reason = one_line(text_of(required(place, table, "reason", "one sentence"), "'reason'", "one sentence"));
  waiver.expires = date_of(required(place, table, "expires", "a date, 2027-03-01"));
  return waiver;
}

bool any_holds(const std::vector<VersionRange>& ranges, const std::string& version) {
  return ranges.empty() ||
         std::any_of(ranges.begin(), ranges.end(), [&](const VersionRange& range) { return range.holds(version); });
}

/// Whether a verdict is the failure that the waiver is about.
bool is_expected(const Waiver& waiver, const Finding& finding) {
  return finding.status == waiver.expect && matches_one(waiver.says_globs, one_line(sentence(finding)));
}

bool equal_or_any(const std::string& wanted, const std::string& is) { return wanted.empty() || wanted == is; }

bool is_about(const Waiver& waiver, const Verdict& verdict, const std::string& version) {
  return matches_one(waiver.case_globs, verdict.run.case_id) &&
         matches_one(waiver.schedule_globs, verdict.run.schedule) &&
         (waiver.backend_glob.empty() || matches(waiver.backend_glob, verdict.backend)) &&
         equal_or_any(waiver.transport, verdict.run.transport) && equal_or_any(waiver.dtype, verdict.dtype) &&
         equal_or_any(waiver.device, verdict.device) && any_holds(waiver.ranks, std::to_string(verdict.run.ranks)) &&
         any_holds(waiver.version, version);
}

/// More unused waivers than this share one line: a run of few cases leaves most waivers unused.
constexpr size_t kMostLinesOfUnused = 3;

/// "2027-03-01"
std::string to_string(const std::chrono::year_month_day& day) {
  char text[40];
  std::snprintf(text, sizeof text, "%04d-%02u-%02u", static_cast<int>(day.year()), static_cast<unsigned>(day.month()),
                static_cast<unsigned>(day.day()));
  return text;
}

std::string format_waiver(const Waiver& waiver) {
  return waiver.where + ": " + waiver.reason + " (" + waiver.link + ", until " + to_string(waiver.expires) + ")";
}

std::string first_of(const std::vector<std::string>& globs) {
  return globs.front() + (globs.size() > 1 ? " and " + std::to_string(globs.size() - 1) + " more" : "");
}

void add_reason(Verdict& verdict, const std::string& reason) {
  verdict.finding.reason += (verdict.finding.reason.empty() ? "" : "; ") + reason;
}

}  // namespace

std::chrono::year_month_day today() { return std::chrono::floor<std::chrono::days>(std::chrono::system_clock::now()); }

bool VersionRange::holds(const std::string& version) const {
  std::string_view text = version;
  const std::vector<int64_t> numbers = take_version(text);
  return !numbers.empty() && std::all_of(clauses.begin(), clauses.end(), [&](const Clause& clause) {
    const int order = compare_versions(numbers, clause.version);
    if (clause.comparison == "==") return order == 0;
    if (clause.comparison == "!=") return order != 0;
    if (clause.comparison == "<") return order < 0;
    if (clause.comparison == "<=") return order <= 0;
    return clause.comparison == ">" ? order > 0 : order >= 0;
  });
}

Waivers::Waivers(std::vector<Waiver> waivers, std::chrono::year_month_day day)
    : waivers_(std::move(waivers)), matched_(waivers_.size()), day_(day) {}

Verdict Waivers::applied(Verdict verdict, const std::string& backend_version) {
  const Waiver *expected = nullptr, *other = nullptr, *old = nullptr;
  for (size_t i = 0; i < waivers_.size(); ++i) {
    const Waiver& waiver = waivers_[i];
    if (!is_about(waiver, verdict, backend_version)) continue;
    matched_[i] = true;
    if (waiver.expires < day_) {
      old = &waiver;
    } else if (is_expected(waiver, verdict.finding) || verdict.finding.status == Status::Pass) {
      if (expected == nullptr || (expected->is_race && !waiver.is_race)) expected = &waiver;
    } else {
      other = &waiver;
    }
  }
  if (expected != nullptr) {
    const bool passed = verdict.finding.status == Status::Pass;
    if (passed && expected->is_race) return verdict;
    verdict.finding.status = passed ? Status::XPass : Status::XFail;
    verdict.waiver = (passed ? "passes, so remove this waiver: " : "") + format_waiver(*expected);
  } else if (is_failure(verdict.finding.status) && other != nullptr) {
    const bool same_status = verdict.finding.status == other->expect;
    add_reason(verdict, "the waiver at " + other->where + " expects " + std::string(status_name(other->expect)) +
                            (same_status ? ", and its sentence like " + first_of(other->says_globs) : ""));
  } else if (is_failure(verdict.finding.status) && old != nullptr) {
    add_reason(verdict, "the waiver at " + old->where + " expired on " + to_string(old->expires));
  }
  return verdict;
}

std::vector<std::string> Waivers::expired() const {
  std::vector<std::string> lines;
  for (size_t i = 0; i < waivers_.size(); ++i)
    if (matched_[i] && waivers_[i].expires < day_)
      lines.push_back("the waiver at " + waivers_[i].where + " expired on " + to_string(waivers_[i].expires) +
                      "; see " + waivers_[i].link + ", then remove it or give it a new date");
  return lines;
}

std::vector<std::string> Waivers::unused() const {
  std::vector<const Waiver*> all;
  for (size_t i = 0; i < waivers_.size(); ++i)
    if (!matched_[i]) all.push_back(&waivers_[i]);
  std::vector<std::string> lines;
  if (all.size() <= kMostLinesOfUnused) {
    for (const Waiver* waiver : all)
      lines.push_back("the waiver at " + waiver->where + " (" + first_of(waiver->case_globs) + " x " +
                      first_of(waiver->schedule_globs) + ") matched no case in this run");
    return lines;
  }
  std::string line = std::to_string(all.size()) + " of " + std::to_string(waivers_.size()) +
                     " waivers matched no case in this run: those at " + all.front()->where;
  for (size_t i = 1; i < all.size(); ++i) line += ", " + all[i]->where.substr(all[i]->where.rfind(':') + 1);
  return {line};
}

std::vector<Waiver> read_waivers(const std::filesystem::path& path, const std::vector<std::string>& case_ids) {
  const std::string file = path.string();
  const toml::table document = parse_toml(read_file(path), file);
  const TomlPlace root(file, document);
  expect_keys(root, document, "a waivers file", {"schema", "waiver"});
  const toml::node* schema = document.get("schema");
  if (schema == nullptr || schema->value<std::string>() != kWaiversSchema)
    throw InputError((schema == nullptr ? file : root.at(*schema).where()) + ": a waivers file needs schema = \"" +
                     kWaiversSchema + "\"");
  const toml::node* list = document.get("waiver");
  if (list == nullptr) return {};
  if (!list->is_array()) root.at(*list).refuse("'waiver' must be a list of tables: [[waiver]]");
  std::vector<Waiver> waivers;
  for (const toml::node& node : *list->as_array()) waivers.push_back(waiver_of(root.at(node), case_ids));
  return waivers;
}

}  // namespace plumbline::conformance
